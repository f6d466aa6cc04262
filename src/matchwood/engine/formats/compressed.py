"""Text files, plain or compressed; the last ending of a name tells: `.gz`, `.zst`."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, Any

COMPRESSIONS = (".gz", ".zst")


def bare_name(path: Path) -> Path:
    """A path without the ending that says how the file is compressed."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in COMPRESSIONS


def open_text(path: Path, newline: str | None = None) -> IO[str]:
    """A file to read; bytes that are no UTF-8 are lone surrogates, a byte order mark is left out.

    A compressed file that is damaged raises an OSError while it is read.
    """
    suffix = path.suffix.lower()
    if suffix not in COMPRESSIONS:
        return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)
    if suffix == ".gz":
        binary: Any = gzip.open(path, "rb")  # noqa: SIM115 - closed by its wrapper
    else:
        import pyarrow as pa

        binary = io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
    return io.TextIOWrapper(binary, "utf-8-sig", "surrogateescape", newline)


def open_text_to_write(path: Path, compression: str = "") -> IO[str]:
    """A file to write, in UTF-8 and with plain line feeds.

    compression  `.gz`, `.zst` or nothing
    """
    if not compression:
        return path.open("w", encoding="utf-8", newline="")
    if compression == ".gz":
        binary: Any = gzip.open(path, "wb", compresslevel=6)  # noqa: SIM115 - the same
    else:
        import pyarrow as pa

        binary = io.BufferedWriter(pa.output_stream(str(path), compression="zstd"))
    return io.TextIOWrapper(binary, "utf-8", newline="")
