"""What Numba's reference counting costs: encode the same conjunctions with it and without.

    python benchmarks/reference_counts.py [conjunctions]

Runs itself in two processes, one of which switches counting on in every kernel; prints microseconds
per conjunction and the seconds spent compiling.  See docs/decisions/0002.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

N_PREDICATES = 5


def measure(n: int) -> None:
    import numba
    import numpy as np

    if os.environ["COUNTING"] == "on":
        plain = numba.njit

        def counting(*args, **options):
            return plain(*args, **{k: v for k, v in options.items() if k != "_nrt"})

        numba.njit = counting
    from matchwood.encode.expressions import ExpressionTable
    from matchwood.encode.merge_kernels import EQ, Leaves, and_token
    from matchwood.kernel.jit import compile_seconds

    rng = np.random.default_rng(1)
    rows = n * N_PREDICATES
    attr = ((rng.integers(0, 400, n)[:, None] + np.arange(N_PREDICATES) * 37) % 400).ravel()
    keys = rng.integers(0, 48, rows)
    leaves = Leaves(
        attr.astype(np.int32),
        np.full(rows, EQ, np.uint8),
        np.arange(rows + 1),
        keys,
        keys,
        np.zeros(rows, np.int8),
    )
    code = np.empty((n, N_PREDICATES + 1), np.int32)
    code[:, 0] = and_token(N_PREDICATES)
    code[:, 1:] = np.arange(rows).reshape(n, N_PREDICATES)
    times = []
    for _ in range(3):
        table = ExpressionTable()
        began = time.perf_counter()
        table.encode(
            leaves,
            np.arange(n + 1) * (N_PREDICATES + 1),
            code.ravel(),
            np.arange(n, dtype=np.int32),
        )
        times.append(time.perf_counter() - began)
    per_conjunction = min(times) / n * 1e6
    print(
        f"counting {os.environ['COUNTING']:<4}{per_conjunction:8.2f} µs per conjunction"
        f"{compile_seconds():8.1f} s compiling"
    )


if __name__ == "__main__":
    size = sys.argv[1] if len(sys.argv) > 1 else "200000"
    if "COUNTING" in os.environ:
        measure(int(size))
    else:
        for counting in ("on", "off"):
            with tempfile.TemporaryDirectory() as cache:
                env = {**os.environ, "COUNTING": counting, "NUMBA_CACHE_DIR": cache}
                env["MATCHWOOD_QUIET"] = "1"
                subprocess.run([sys.executable, __file__, size], check=True, env=env)
