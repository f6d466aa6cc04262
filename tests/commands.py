"""The command line as a function."""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest.mock import patch

from typer.main import get_command
from typer.testing import CliRunner

from matchwood.cli.app import app

# CliRunner makes all commands from their functions in every call, which takes longer than most of
# them run.  A command is not changed by running it: make them once.
patch("typer.testing._get_command", cache(get_command)).start()


def call(*words: object, **more: Any) -> Any:
    """Run `matchwood` with these words in this process; its exit code and output."""
    return CliRunner().invoke(app, [str(word) for word in words], **more)
