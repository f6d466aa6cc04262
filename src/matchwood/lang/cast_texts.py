"""What a cast of a string reads, as in Spark: blanks, integers, special numbers, booleans."""

from __future__ import annotations

import re

BLANKS = "".join(map(chr, range(33)))
"""What casts trim: the space and all control characters below it."""

INTEGER = re.compile(r"[-+]?[0-9]+")
SPECIAL = re.compile(r"[-+]?(?:inf|infinity)|nan", re.IGNORECASE)
BOOLS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
