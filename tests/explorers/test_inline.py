"""The hook that puts modules into a page: in order, apart from each other, and nothing it does not know."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from mkdocs.exceptions import PluginError

from tests.explorers import harness


@pytest.fixture(scope="module")
def inline() -> ModuleType:
    return harness.inline()


def test_what_is_needed_comes_first_and_once(inline: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "base.js").write_text("export const one = 1;\nconst hidden = 2;\n")
    (tmp_path / "more.js").write_text(
        'import { one } from "./base.js";\nexport function two() {}\n'
    )
    entry = tmp_path / "entry.js"
    entry.write_text(
        'import { two } from "./more.js";\nimport {\n  one as uno,\n} from "./base.js";\n'
    )
    bundled = inline.bundle(entry)
    assert bundled.count("const one = 1;") == 1
    assert bundled.index("const one = 1;") < bundled.index("function two") < bundled.index("uno")
    assert "const { one: uno, } = $module0;" in bundled
    assert "return { one };" in bundled
    assert "import" not in bundled.replace("important", "")


def test_comments_stay_at_home_and_code_does_not(inline: ModuleType, tmp_path: Path) -> None:
    entry = tmp_path / "entry.js"
    entry.write_text(
        "// first\n/** two\n * lines */\nconst a = 1; // beside\n/** in front */ const b = 2;\n"
        "  /** one */\nconst c = '// no comment';\n/** last */\n"
    )
    bundled = inline.bundle(entry)
    kept = "const a = 1; // beside\n/** in front */ const b = 2;\nconst c = '// no comment';\n"
    assert kept in bundled
    assert "first" not in bundled
    assert "lines" not in bundled


@pytest.mark.parametrize(
    "line",
    [
        'import all from "./base.js";',
        'import * as all from "./base.js";',
        'export * from "./base.js";',
        "export default 1;",
        "export let count = 1;",
        'const later = import("./base.js");',
        "const here = import.meta.url;",
        'const tag = "</script>";',
    ],
)
def test_other_forms_are_refused(inline: ModuleType, tmp_path: Path, line: str) -> None:
    (tmp_path / "base.js").write_text("export const one = 1;\n")
    entry = tmp_path / "entry.js"
    entry.write_text(f"// first line\n{line}\n")
    with pytest.raises(PluginError, match=r"entry\.js:2"):
        inline.bundle(entry)
