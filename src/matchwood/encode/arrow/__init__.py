"""Arrow columns to keys, vectorised for every type."""
