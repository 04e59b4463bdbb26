"""All commands: each says how it ends, stands on the page of commands, and refuses on stderr."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import typer

from grader.commands import completion
from grader.commands import main as cli
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
