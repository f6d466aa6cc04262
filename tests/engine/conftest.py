"""Segments small enough that few subscriptions make many of them."""

from __future__ import annotations

import pytest

from matchwood.engine.segments import background, tiers


@pytest.fixture
def small_segments(monkeypatch):
    """Many small segments, which stay unless a test asks for `merging` too."""
    monkeypatch.setattr(tiers, "HEAD_MOST", 4)
    monkeypatch.setattr(tiers, "RECENT_MOST", 2)
    monkeypatch.setattr(background, "IS_ON", False)


@pytest.fixture
def merging(monkeypatch, small_segments):
    """Two segments of a tier are merged, in the background."""
    monkeypatch.setattr(tiers, "FACTOR", 2)
    monkeypatch.setattr(background, "IS_ON", True)
