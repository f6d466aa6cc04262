"""Every index of the registry in memory that cannot be written, searched by two threads at once.

    python tests/index/read_only_run.py

A write ends the process (SIGSEGV); the last line names the index.  Answers are compared with those
of scan.  Arrays are moved to pages of their own, which are then protected: their flags still say
that they can be written, so that no kernel has to be compiled for another type.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from encode.world import found, shared_world
from matchwood.index.core.registry import REGISTRY, find_index
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan

PROT_READ = 1
_libc = ctypes.CDLL(None, use_errno=True)
_kept: list[Any] = []


def protected(array: np.ndarray) -> np.ndarray:
    """A copy in pages that cannot be written."""
    if array.dtype == object or not array.size:
        return array
    pages = mmap.mmap(-1, array.nbytes)
    copy = np.frombuffer(pages, array.dtype).reshape(array.shape)
    copy[...] = array
    length = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    if _libc.mprotect(ctypes.c_void_p(copy.ctypes.data), ctypes.c_size_t(length), PROT_READ):
        raise OSError(ctypes.get_errno(), "mprotect")
    _kept.append(pages)
    return copy


def freeze(thing: Any, done: dict[int, Any]) -> Any:
    """The same thing, all its arrays protected; objects and containers are changed in place."""
    if id(thing) in done:
        return done[id(thing)]
    result = done[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        result = protected(thing)
    elif isinstance(thing, tuple) and type(thing).__module__.startswith("matchwood"):
        result = type(thing)(*[freeze(each, done) for each in thing])
    elif isinstance(thing, tuple):
        result = tuple(freeze(each, done) for each in thing)
    elif isinstance(thing, (list, dict)):
        for at, each in list(enumerate(thing) if isinstance(thing, list) else thing.items()):
            thing[at] = freeze(each, done)
    elif type(thing).__module__.startswith("matchwood") and hasattr(thing, "__dict__"):
        for name, each in list(vars(thing).items()):
            if not name.startswith("__"):
                object.__setattr__(thing, name, freeze(each, done))
    _kept.append(thing)  # so that no id is used again
    done[id(thing)] = result
    return result


def answers_at_once(index: Any, events: Any) -> list[list[list[int]]]:
    barrier = threading.Barrier(2)
    answers: list[list[list[int]]] = []

    def run() -> None:
        scratch = Scratch()
        barrier.wait()
        for _ in range(5):
            answers.append(found(index.search(events, scratch)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def main() -> None:
    world, events, _ = shared_world(3)
    worlds = {language: world.speaking(language) for language in ("any", "conjunctions")}
    right = {
        language: found(Scan.build(world.table, held).search(events, Scratch()))
        for language, held in worlds.items()
    }
    done: dict[int, Any] = {}
    indexes = []
    for name in sorted(REGISTRY):
        cls = find_index(name)
        index = cls.build(world.table, worlds[cls.language])
        index.settle()
        indexes.append(index)
    for index in indexes:
        freeze(index, done)
    for index in indexes:
        print(index.name, flush=True)
        answers = answers_at_once(index, events)
        if answers != [right[index.language]] * 10:
            raise SystemExit(f"{index.name}: other answers than scan")
    print("all", flush=True)


if __name__ == "__main__":
    main()
