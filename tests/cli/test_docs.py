"""docs/cli.md and the command say the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from commands import call
from matchwood.cli.app import app

DOC = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (matchwood .*?)\n(.*?)(?=^## |\Z)", DOC, re.MULTILINE | re.DOTALL))
FILES = dict(re.findall(r"^`(\w+\.\w+)`\n\n```\w+\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL))


def leaves(command: Any, name: str = "matchwood") -> dict[str, Any]:
    """Every command that does something, by its full name."""
    if not hasattr(command, "commands"):
        return {name: command}
    found: dict[str, Any] = {}
    for word, child in command.commands.items():
        found |= leaves(child, f"{name} {word}")
    return found


COMMANDS = leaves(get_command(app))


def options(command: Any) -> set[str]:
    return {
        name
        for param in command.params
        for name in [*param.opts, *param.secondary_opts]
        if name.startswith("--") and name != "--help"
    }


def test_every_command_has_a_section() -> None:
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_documented_options_are_the_real_ones(name: str) -> None:
    documented = set(re.findall(r"^\| `(--[\w-]+)` \|", SECTIONS[name], re.MULTILINE))
    assert documented == options(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option(name: str) -> None:
    shown = call(*name.split()[1:], "--help", env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert options(COMMANDS[name]) <= set(re.findall(r"--[\w-]+", shown.stdout))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_section_has_an_example_with_real_options(name: str) -> None:
    lines = re.findall(r"^(?:\$ )?(matchwood .*)$", SECTIONS[name], re.MULTILINE)
    assert lines
    for line in lines:
        assert line.startswith(name)
        assert set(re.findall(r"--[\w-]+", line)) <= options(COMMANDS[name])


def sessions() -> list[tuple[str, str]]:
    """Every `$ command` of the console blocks, and what it prints."""
    blocks = re.findall(r"^```console\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    return [
        (command, printed)
        for block in blocks
        for command, printed in re.findall(
            r"^\$ matchwood (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE
        )
    ]


@pytest.mark.parametrize(("command", "printed"), sessions())
def test_examples_print_what_is_shown(
    command: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = call(*shlex.split(command))
    assert result.exit_code in (0, 1), result.stderr
    assert isinstance(result.exception, (SystemExit, type(None)))
    if printed != "...\n":
        assert result.stdout == printed
