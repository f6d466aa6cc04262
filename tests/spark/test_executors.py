"""What the package asks of sessions."""

from __future__ import annotations

from pathlib import Path

import matchwood.spark


def test_the_package_never_asks_for_a_spark_context() -> None:
    # Spark Connect has none
    files = list(Path(matchwood.spark.__file__).parent.glob("*.py"))
    assert len(files) > 20
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    found = [name for name, text in texts.items() if ".sparkContext" in text or "._sc" in text]
    assert found == []
