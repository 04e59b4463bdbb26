"""All commands: each says how it ends, stands on the page of commands, and refuses on stderr."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import typer
from rich.table import Table
from rich.text import Text

from grader.commands import completion
from grader.commands import main as cli
from grader.commands.consoles import SafeConsole
from grader.course.course import CourseError
from tests import ROOT

PAGE = (ROOT / "site" / "commands.md").read_text()


def commands(group, name="undertorch") -> Iterator[tuple[str, object]]:
    """Yield each command with its full name, those of groups too."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


class Line(NamedTuple):
    """What typer tells a completion of the line before the word."""

    params: dict[str, str]


COMMANDS = dict(commands(typer.main.get_command(cli.app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_how_it_ends(name):
    first, *rest = COMMANDS[name].help.split("\n")
    assert first.endswith(".")
    assert re.search(r"^Exit status: ", "\n".join(rest), re.MULTILINE), "add it to the docstring"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_stands_on_its_page(name):
    assert re.search(rf"^\| `{name}\b", PAGE, re.MULTILINE), "add a row to site/commands.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_words_of_a_command_line_look_alike(name):
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            assert parameter.metavar, f"{parameter.name}: give it a metavar in capitals"
            assert not set("[].") & set(parameter.metavar), "typer adds brackets and dots"


def test_what_was_not_done_ends_with_2(monkeypatch, capsys):
    def refuse():
        raise CourseError("No chapter is called [bold]x[/bold].")

    monkeypatch.setattr(cli, "app", refuse)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.out == "" and said.err == "undertorch: No chapter is called [bold]x[/bold].\n"


def test_a_known_answer_is_printed_whole(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    cli.app(["answer", "MiniDDP", "sums"], standalone_mode=False)
    program = capsys.readouterr().out
    assert "def no_sync(self)" in program and "get_world_size" not in program
    cli.app(["answer", "MiniDDP"], standalone_mode=False)
    assert re.search(
        r"^mistake +sums +Your gradients are sums\.", capsys.readouterr().out, re.MULTILINE
    )
    with pytest.raises(CourseError, match=r"no known answer 'sum'\. It has: builtin_ddp, sums, "):
        cli.app(["answer", "MiniDDP", "sum"], standalone_mode=False)
    assert "sums" in completion.answers(Line({"exercise": "MiniDDP"}), "su")
    assert completion.answers(Line({}), "su") == []


def test_a_console_shows_what_students_wrote_and_obeys_none_of_it(capsys):
    shown = Table("id\x9b")
    shown.add_row(Text("a\x1b[31mb"), "[blink]c")
    console = SafeConsole(markup=False, emoji=False, force_terminal=False)
    console.print("x\x1b]0;owned\x07 :skull:", shown)
    said = capsys.readouterr().out
    assert not set("\x1b\x07\x9b") & set(said)
    assert "│ a[31mb │" in said and "[blink]c" in said and ":skull:" in said
    console = SafeConsole(force_terminal=True, color_system="standard")
    console.print(Text("red\x1b[2J", "red"))
    assert capsys.readouterr().out == "\x1b[31mred[2J\x1b[0m\n"  # rich's own colours stay


@pytest.mark.parametrize("mark", ["undertorch.toml", "nbgrader_config.py", "gradebook.db"])
def test_no_command_runs_where_students_files_are_the_nearest_course(
    mark, tmp_path, monkeypatch, capsys
):
    (tmp_path / mark).write_text("")
    folder = tmp_path / "submitted" / "mallory" / "ch01_formats"
    folder.mkdir(parents=True)
    (folder / "nbgrader_config.py").write_text("raise SystemExit('obeyed')")
    (folder / "undertorch.toml").write_text("")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["undertorch", "export", "--for", "canvas"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "lies what was handed in" in said and f"cd {tmp_path}" in said
