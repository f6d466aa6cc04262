"""Output of a micro-batch: written to a folder of its own, then renamed; never replaced.

out/.writing-7-2-5f3a/matches ──rename──► out/matches/batch=7      the batch is done
                     /errors  ──rename──► out/errors/batch=7       before that
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from matchwood.errors import StorageError
from matchwood.spark.folders import remove_old
from matchwood.spark.stream_owner import Fence

_ATTEMPT = ".writing-"


def is_done(out: str, batch: int) -> bool:
    """Whether a batch was committed before."""
    return Path(out, "matches", f"batch={batch}").exists()


def new_attempt(out: str, batch: int, fence: Fence) -> Path:
    """A folder for the output of one attempt at a batch; not created."""
    return Path(out, f"{_ATTEMPT}{batch}-{fence.epoch}-{uuid.uuid4().hex}")


def remove_old_attempts(out: str) -> None:
    """Remove what killed drivers left behind a day ago."""
    remove_old(Path(out), _ATTEMPT)


def commit(out: str, batch: int, attempt: Path, fence: Fence) -> None:
    """Give the folders of an attempt their names; the last rename makes the batch done."""
    name = f"batch={batch}"
    fence.check()
    if (attempt / "errors").exists():
        errors = Path(out, "errors", name)
        if not is_done(out, batch):
            shutil.rmtree(errors, ignore_errors=True)  # of an attempt that was not committed
        _rename(attempt / "errors", errors)
    _rename(attempt / "matches", Path(out, "matches", name))


def _rename(source: Path, target: Path) -> None:
    """Rename a folder; StorageError if there is one of this name, which is never replaced."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError as error:
        if not target.exists():
            raise
        raise StorageError(
            f"expected no folder {str(target)!r}, found one: another driver has committed this "
            "batch; stop one of the two"
        ) from error
