"""Functions of computed attributes: `registry` is the list, `evaluate` computes them."""
