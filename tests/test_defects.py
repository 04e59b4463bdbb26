"""The defects that are put in on purpose have their places still: `python -m tests.defects` takes long."""

from tests.defects import DEFECTS, ROOT


def test_each_can_be_put_in() -> None:
    gone = [
        one.what
        for one in DEFECTS
        if one.was not in (ROOT / one.file).read_text(encoding="utf-8")
        or (one.finder.startswith("tests/") and not (ROOT / one.finder).exists())
    ]
    assert not gone
