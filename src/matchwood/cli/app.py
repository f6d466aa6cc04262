"""All commands in one place, and how errors end: a sentence and an exit code, no traceback."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from matchwood.cli import (
    bench,
    demo,
    explain,
    generate,
    import_rules,
    kernels,
    match,
    misses,
    relations,
    stats,
    stream,
    validate,
    verify,
)
from matchwood.cli.screen import INTERRUPTED, NO, PIPE_CLOSED, USAGE, complain
from matchwood.cli.spark_session import spark_reason
from matchwood.errors import IndexBuildError, MatchwoodError, StorageError


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (StorageError, IndexBuildError) as error:
            complain(str(error))
            raise typer.Exit(USAGE) from None
        except BrokenPipeError:
            # what is left in the buffer has no reader; without this Python complains at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from None
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            complain(str(error))
            raise typer.Exit(USAGE) from None
        except MatchwoodError as error:
            complain(str(error))
            # Errors about expressions, events, ids and snapshots have classes of their own; the
            # root itself is raised for names of suites, workloads and the like.
            is_wrong_call = type(error) is MatchwoodError
            raise typer.Exit(USAGE if is_wrong_call else NO) from None
        except Exception as error:
            reason = spark_reason(error)
            if reason is None:
                raise
            complain(reason)
            raise typer.Exit(USAGE) from None


# Sub-commands inherit these names of the option.
HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    cls=_Commands,
    help="Keep millions of Boolean expressions and tell, for every event, which of them hold.",
    no_args_is_help=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"matchwood {version('matchwood')}")
        except PackageNotFoundError:
            typer.echo("matchwood, from a folder it is not installed from")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.command()(generate.generate)
app.command()(match.match)
app.command("import")(import_rules.import_)
app.command()(stream.stream)
app.command()(validate.validate)
app.command()(explain.explain)
app.command()(stats.stats)
app.command()(verify.verify)
app.command()(misses.near)
app.command("why-not")(misses.why_not)
app.command()(relations.duplicates)
app.command()(relations.overlaps)
app.command()(relations.subsumes)
app.command()(kernels.kernels)
app.add_typer(bench.app, name="bench")
