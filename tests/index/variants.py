"""Settings that every index is tested with: each setting and each named choice occurs."""

from __future__ import annotations

from typing import Any

_CONTEXT: list[dict[str, Any]] = [
    {"indexes": 0},
    {"indexes": 1, "structure": "hash_table"},
    {"indexes": 3, "structure": "search_tree"},
    {"structure": "interval_skip_list"},
    {"merge": "bitmap"},
]
_SPACES: list[dict[str, Any]] = [
    {"signature_bits": 0, "space_size": 0},
    {"space_size": 1, "max_spaces": 4, "max_records": 2, "max_points": 0},
    {"ranking": "operators", "learn_every": 1, "window": 64},
    {"learn_every": 0},
]

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "a_tree": [
        {"matching": "zero_suppression"},
        {"matching": "three_valued"},
        {"share": False},
        {"reorganise": False, "self_adjust": False, "rehang": False},
        {"binary": True},
        {"access": "random", "search_limit": 1, "id_bits": 0},
    ],
    "agile": [
        *_CONTEXT,
        {"policy": "always"},
        {"policy": "fixed", "false_positives": 1},
        {"policy": "auto", "constant": 0.0},
        {"policy": "rent", "rent": 1},
    ],
    "bdd": [{"node_limit": 10_000}, {"step_limit": 5_000}],
    "be_tree": [
        {"max_cap": 1, "min_size": 1},
        {"max_cap": 2, "rank_window": 1.0, "theta": 0.5, "histogram": False},
        {"max_cap": 2, "windows": "node", "capacity": "feedback", "rank_window": 0.01},
        {"max_cap": 2, "alpha_s": 0.0, "alpha_c": 0.0, "beta": 0.0, "gamma": 0.0},
    ],
    "blocks": [
        {"space_size": 0, "max_spaces": 4, "max_records": 2, "max_points": 0},
        {"max_points": 3},
        {"undecided": 0.0, "least": 0.0},
        {"exact": 1000.0, "columns": 0.0},
        {"exact": 0.0, "columns": 0.0, "sieve": 1000.0, "least": 0.0},
        {"exact": 0.0, "columns": 0.0, "sieve": 0.0, "least": 0.0},
        {"exact": 0.0, "columns": 1.0},
        {"exact": 0.0, "ungated": 1, "gated": 2},
        {"columns": 0.0, "ungated": 1, "gated": 1},
        {"exact": 0.0, "columns": 0.0, "grouped": 0},
    ],
    "eager": _CONTEXT,
    "gbu": [*_CONTEXT, {"updates": "bottom_up"}],
    "gryphon": [
        {"leaf_capacity": 0},
        {"leaf_capacity": 1},
        {"leaf_capacity": 2, "factor": 2, "copies": 1_000},
    ],
    "k_index": [{"max_postings": 10_000}, {"algorithm": "counting"}],
    "no_index": _CONTEXT,
    "op_index": [{"sorting": "always"}],
    "partial": [*_CONTEXT, {"low": 2.0, "high": 5.0}],
    "propagation": [{"full_reset": True}],
    "pst_bloom": [*_SPACES, {"signatures": "leaves", "leaf_bits": 64}],
    "pst_hash": [*_SPACES, {"n_access": 1}, {"n_access": 3, "max_records": 1}],
    "r_tree": [{"attributes": (0, 1)}, {"library": "shapely"}, {"loading": "insert"}],
    "translation": [
        {"base": name, "limit": 1_000}
        for name in ("be_tree", "counting", "k_index", "vcr", "gryphon", "pst_hash", "op_index")
    ],
    "vcr": [
        {"decomposition": "simple", "lists": "table", "cells": (4, 4)},
        {"decomposition": "overlapped", "lists": "hash", "cells": (8, 2), "sides": (2, 2)},
        {"attributes": (0, 1), "decomposition": "simple", "lists": "hash"},
        {"decomposition": "overlapped", "lists": "table", "most_vcrs": 1},
        {"decomposition": "simple", "lists": "chains", "places": 7, "cells": (8, 8)},
    ],
}
