"""The README and the docstrings tell the truth: snippets print what they show, commands exist.

Convention: every ```python block is a doctest session; all of them run in order, in one namespace,
in an empty folder, and each shown output is compared to the letter.  Every ```sh block holds one
command per line.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
from pathlib import Path

import pytest

from commands import call

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    (match[1], match[2], README[: match.start()].count("\n") + 1)
    for match in _FENCE.finditer(README)
]
PROSE = _FENCE.sub("", README)


def blocks(language: str) -> list[tuple[str, int]]:
    return [(text, line) for name, text, line in BLOCKS if name == language]


def test_snippets_print_what_they_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    namespace: dict[str, object] = {"__name__": "readme"}
    report: list[str] = []
    for text, line in blocks("python"):
        snippet = parser.get_doctest(text, namespace, f"README.md:{line}", "README.md", line)
        runner.run(snippet, out=report.append, clear_globs=False)
        namespace = snippet.globs
    assert runner.failures == 0, "".join(report)
    assert runner.tries > 20


def documented_modules() -> list[str]:
    """Every module of the package that shows a session in a docstring."""
    source = ROOT / "src"
    paths = [path for path in source.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(source).with_suffix("").parts) for path in sorted(paths)]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("module", documented_modules())
def test_docstrings_print_what_they_show(module: str) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for snippet in doctest.DocTestFinder().find(importlib.import_module(module)):
        runner.run(snippet, out=report.append)
    assert runner.failures == 0, "".join(report)
    assert runner.tries > 0


@pytest.mark.parametrize("text", [text for text, _ in blocks("python")])
def test_snippets_hold_nothing_that_is_not_checked(text: str) -> None:
    assert text.startswith(">>> ")
    assert "doctest:" not in text, "outputs are compared to the letter"
    # Without a blank line the closing fence would be taken for output that is expected.
    assert text.endswith("\n\n")


def test_every_block_is_python_or_sh() -> None:
    assert {name for name, _, _ in BLOCKS} == {"python", "sh"}


def commands() -> list[str]:
    """Every line of the sh blocks, and every command in back-ticks in the text around them."""
    lines = [line for text, _ in blocks("sh") for line in text.splitlines() if line.strip()]
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PROSE)
    named = re.compile(r"(\w+=\S+ )*(\.venv/)?(bin/|make |matchwood )")
    return lines + [text for text in inline if named.match(text)]


def subcommand(words: list[str]) -> list[str]:
    """The leading plain words: `bench run` of `bench run --suite scan`."""
    plain = []
    for word in words:
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        plain.append(word)
    return plain


@pytest.mark.parametrize("command", commands())
def test_every_command_exists(command: str) -> None:
    words = command.split("#")[0].split()
    while "=" in words[0]:
        words.pop(0)
    name, rest = words[0], words[1:]
    if name.removeprefix(".venv/bin/") == "matchwood":
        done = call(*subcommand(rest), "--help")
        assert done.exit_code == 0, done.output
    elif name == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets)
    elif name == "pip":
        extras = re.findall(r"\[([\w,]+)\]", command)
        declared = (ROOT / "pyproject.toml").read_text()
        assert all(f"\n{extra} = [" in declared for text in extras for extra in text.split(","))
    else:
        assert name.startswith(("bin/", ".ci/")), f"what is {name}?"
        assert os.access(ROOT / name, os.X_OK)


def test_the_two_commands_are_the_first_thing_to_do() -> None:
    first, _ = blocks("sh")[0]
    assert [line.split()[0] for line in first.splitlines()] == ["bin/demo", "bin/test"]


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)", PROSE))
def test_every_link_leads_to_a_file(target: str) -> None:
    assert (ROOT / target).is_file()


@pytest.mark.parametrize("folder", re.findall(r"^\| `(\w+)` \|.*\|.*\|$", PROSE, re.MULTILINE))
def test_every_layer_of_the_source_table_exists(folder: str) -> None:
    assert (ROOT / "src" / "matchwood" / folder).is_dir()


def test_every_error_is_listed() -> None:
    from matchwood import errors

    leaves = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type)
        and issubclass(kind, errors.MatchwoodError)
        and not kind.__subclasses__()
    }
    listed = set(re.findall(r"^\| `(\w+Error)` \|", PROSE, re.MULTILINE))
    assert listed == leaves
