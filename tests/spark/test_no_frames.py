"""What is no DataFrame of Spark is refused with a sentence, before anything runs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import matchwood as mw
from matchwood.spark import Index, match, match_sharded

LOCAL = pd.DataFrame({"event_id": [1], "x": [1]})


class Frame:
    """As much of a DataFrame as the checks read."""

    sparkSession = None  # noqa: N815 - as a DataFrame has it


@pytest.mark.parametrize("events", [5, None, LOCAL], ids=["int", "None", "pandas"])
def test_events_are_a_frame_of_spark(events: Any) -> None:
    expected = f"expected events as a DataFrame of Spark.*found {type(events).__name__}"
    with pytest.raises(mw.EventError, match=expected):
        match(events, "snapshot")
    with pytest.raises(mw.EventError, match=expected):
        match_sharded(events, Frame(), "folder")  # type: ignore[arg-type]


@pytest.mark.parametrize("subscriptions", [5, None, LOCAL], ids=["int", "None", "pandas"])
def test_subscriptions_are_a_frame_of_spark(subscriptions: Any) -> None:
    expected = f"expected subscriptions as a DataFrame.*found {type(subscriptions).__name__}"
    for call in (lambda: match(Frame(), subscriptions), lambda: Index.build(subscriptions)):  # type: ignore[arg-type]
        with pytest.raises(mw.SubscriptionError, match=expected):
            call()
