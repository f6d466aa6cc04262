"""Parsing in bulk: texts to leaf rows, on every core when there are many for the parser.

Python parses on one core at a time, so large batches go to worker processes.  They are started as
plain commands (`python -m matchwood.engine.input.parsing`), not forked and not spawned: that is
safe beside threads and a JVM, and a user's script needs no `if __name__ == "__main__"`.

A message is its length (8 bytes) and a pickle; workers read chunks of texts and answer in order.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from matchwood.encode.leaves import LeafBatch
from matchwood.encode.texts.bulk import write_texts
from matchwood.encode.texts.quick import write_text
from matchwood.engine.input.fields import read_count
from matchwood.errors import MatchwoodError
from matchwood.kernel.cores import usable_cores
from matchwood.lang.nodes import Boolean
from matchwood.lang.parser import parse

Parsed = tuple[LeafBatch, list[int], dict[int, Exception]]
"""Leaf rows, the row of each expression in them, and what was refused."""

FEW = 12
"""Texts below which they are read one by one."""

PARALLEL_FROM = 60_000
"""Texts from which starting worker processes pays, unless most are of the usual form: those are
read in less time than their rows take from one process to another."""
SAMPLE = 1_000


def parse_texts(texts: Sequence[str | Boolean]) -> Parsed:
    """Leaf rows of a chunk of texts (or trees)."""
    batch, others = LeafBatch(), LeafBatch()
    if len(texts) < FEW:
        written = [type(text) is str and write_text(batch, text) for text in texts]
        is_taken = np.array(written, bool)
    else:
        is_taken = write_texts(batch, texts)
    rows, other_rows = np.flatnonzero(is_taken).tolist(), []
    refused: dict[int, Exception] = {}
    for row in np.flatnonzero(~is_taken).tolist():
        text = texts[row]
        try:
            others.add(text.expression() if isinstance(text, Boolean) else parse(text))
            other_rows.append(row)
        except MatchwoodError as error:
            refused[row] = error
    if other_rows:
        batch.extend(others)
        rows += other_rows
        order = np.argsort(rows)
        batch, rows = batch.some(order), np.asarray(rows)[order].tolist()
    return batch, rows, refused


def parse_chunks(
    chunks: Iterable[list[Any]], total: int, processes: int | None
) -> Iterator[Parsed]:
    """Parse chunks in order, in as many processes as are worth it."""
    advice = "leave it out to have as many as are worth it"
    wanted = 1 if processes is None else read_count(processes, "processes", advice)
    if processes is None and total >= PARALLEL_FROM:
        chunks = iter(chunks)
        first = next(chunks, [])
        is_usual = write_texts(LeafBatch(), first[:SAMPLE]).mean() > 0.5
        wanted = 1 if is_usual else usable_cores()
        chunks = chain([first], chunks)
    if wanted < 2 or not sys.executable:
        yield from map(parse_texts, chunks)
        return
    workers = [_Worker() for _ in range(wanted)]
    try:
        with ThreadPoolExecutor(wanted) as pool:
            free = deque(workers)
            waiting: deque[tuple[Future[Parsed], _Worker]] = deque()
            for chunk in chunks:
                oldest = None
                if not free:
                    future, worker = waiting.popleft()
                    oldest = future.result()
                    free.append(worker)
                worker = free.popleft()
                waiting.append((pool.submit(worker.parse, chunk), worker))
                if oldest is not None:
                    yield oldest
            for future, _ in waiting:
                yield future.result()
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that parses; if it is lost, its chunks are parsed here."""

    def __init__(self) -> None:
        path = os.pathsep.join([each or str(Path.cwd()) for each in sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "matchwood.engine.input.parsing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "MATCHWOOD_QUIET": "1"},
        )

    def parse(self, texts: list[Any]) -> Parsed:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _send(self._process.stdin, texts)
            answer: Parsed | None = _receive(self._process.stdout)
        except (OSError, pickle.PickleError, EOFError):
            answer = None
        return parse_texts(texts) if answer is None else answer

    def stop(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.wait()


def _send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack("<q", len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        return None
    (size,) = struct.unpack("<q", head)
    return pickle.loads(stream.read(size))  # noqa: S301 - from our own process


def main() -> None:
    """The worker: answer chunks until the input ends."""
    while (texts := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, parse_texts(texts))


if __name__ == "__main__":
    main()
