"""Values that change: contexts, AGILE and the filters that its paper compares it with.

Imported with `matchwood` itself, so that the registry knows the indexes of this layer; it imports
nothing else before one of them is used.
"""

from __future__ import annotations

from matchwood.index.core.registry import register

CONTEXT_INDEXES = {
    "agile": "matchwood.context.filters:Agile",
    "no_index": "matchwood.context.filters:NoIndex",
    "eager": "matchwood.context.filters:Eager",
    "partial": "matchwood.context.filters:Partial",
    "gbu": "matchwood.context.filters:Gbu",
}
"""The indexes that hold subscriptions with a context: name -> module and class."""

register(CONTEXT_INDEXES)
