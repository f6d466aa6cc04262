"""What several files of Spark's tests share."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """An address in an object store that speaks S3, on this machine."""
    server_module = pytest.importorskip("moto.server", reason="an object store: moto, flask")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    try:
        made = urllib.request.Request(f"http://127.0.0.1:{port}/rules", method="PUT")
        urllib.request.urlopen(made).close()
        options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        yield f"s3://key:secret@rules/indexes?{options}"
    finally:
        server.stop()
