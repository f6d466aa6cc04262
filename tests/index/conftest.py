"""Every index of the registry, by name: a new one is held to the contract without test code."""

from __future__ import annotations

import pytest

from matchwood.index.core.protocol import Index
from matchwood.index.core.registry import REGISTRY, find_index


@pytest.fixture(scope="module", params=sorted(REGISTRY))
def index_class(request: pytest.FixtureRequest) -> type[Index]:
    return find_index(request.param)
