"""Deferred compiling: what a call defers ends with the call, however it ends."""

from __future__ import annotations

import pytest

from faults import fault_at
from matchwood.kernel.deferred import deferred, is_deferred


def test_a_call_is_deferred_while_it_lasts() -> None:
    assert not is_deferred()
    assert deferred(lambda: (is_deferred(), deferred(is_deferred), is_deferred())) == (True,) * 3
    assert not is_deferred()
    with pytest.raises(ZeroDivisionError):
        deferred(lambda: 1 // 0)
    assert not is_deferred()


def test_an_interruption_at_any_step_leaves_nothing_deferred() -> None:
    step = 0
    while True:
        with fault_at(step, KeyboardInterrupt) as fault:
            deferred(is_deferred)
        assert not is_deferred(), fault.where
        if not fault.happened:
            break
        step += 1
    assert step > 4
