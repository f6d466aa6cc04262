from __future__ import annotations

from matchwood.kernel.id_lists import IdListStore


def test_lists_of_an_empty_snapshot_grow() -> None:
    store = IdListStore(3)
    again = IdListStore()
    again.take(store.saved("x_"), "x_")
    assert len(again.lists.item) == 0
    again.grow()
    assert len(again.lists.item) > 0
