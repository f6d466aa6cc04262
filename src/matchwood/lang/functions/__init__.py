"""Functions of computed attributes: `registry` is the list, `evaluate` computes them for an event."""
