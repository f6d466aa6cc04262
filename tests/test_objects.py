"""Python's objects in kernels: what a kernel does without the interpreter's lock."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.objects import kernel_with_gil, let_others_run, run_alone


@kernel_with_gil
def wait_for_others(state, counter, most):
    """Count, at `counter`, until another thread has written to the first element."""
    thread = let_others_run()
    for _ in range(most):
        state[counter] += 1
        if state[0] != 0:
            break
    run_alone(thread)
    return state[0]


@pytest.mark.skipif(not IS_COMPILED, reason="without a compiler the interpreter takes turns itself")
def test_other_threads_run_while_a_kernel_lets_them():
    state = np.zeros(2, np.int64)
    assert wait_for_others(state, 1, 10) == 0  # compiled; and nothing waits for a thread

    def answer() -> None:
        while state[1] <= 10:
            pass
        state[0] = 7

    other = threading.Thread(target=answer)
    other.start()
    assert wait_for_others(state, 1, 10**10) == 7
    other.join()
