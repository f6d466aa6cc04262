"""A finished run of a suite that is written to one JSON file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class KeptRun:
    """What was measured, and the file that it was written to."""

    def __init__(self, data: dict[str, Any], path: Path | None = None) -> None:
        self.data, self.path = data, path

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1)

    def write(self, out: Path | None) -> None:
        """Write to a .json file, or to a new one in a folder."""
        target = out or Path("bench-results")
        if target.suffix != ".json":
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
            target = target / f"{self.data['suite']}-{self.data['preset']}-{stamp}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.to_json() + "\n")
        self.path = target
