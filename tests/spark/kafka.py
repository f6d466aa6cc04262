"""A Kafka broker for tests, on loopback, from jars of Maven's central repository.

python tests/spark/kafka.py FOLDER     fetch the jars; `bin/setup dev` does, into .venv/kafka

Files are listed with their checksums in tests/fixtures/kafka_jars.txt: `broker` is one node of
Kafka (it is its own controller), `connector` is what Spark needs to read and write topics.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = "maven:"
LIST = Path(__file__).parents[1] / "fixtures" / "kafka_jars.txt"
JARS = Path(os.environ.get("MATCHWOOD_KAFKA", Path(sys.prefix) / "kafka"))
"""Where the jars are looked for."""

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
JAVA = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def listed(folder: Path) -> list[tuple[Path, str, str]]:
    """File, checksum and address of each jar."""
    rows = [line.split() for line in LIST.read_text().splitlines()]
    return [(folder / kind / Path(path).name, digest, path) for kind, digest, path in rows]


def are_there(folder: Path = JARS) -> bool:
    return all(file.exists() for file, _, _ in listed(folder))


def fetch(folder: Path) -> None:
    """Fetch what is missing; a file that is not the expected one is an error."""

    def one(wanted: tuple[Path, str, str]) -> None:
        file, digest, path = wanted
        if file.exists():
            return
        with urllib.request.urlopen(SOURCE + path, timeout=20) as opened:
            data = opened.read()
        if hashlib.sha256(data).hexdigest() != digest:
            raise SystemExit(f"{SOURCE + path}: expected sha256 {digest}, found another")
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_suffix(".part")
        aside.write_bytes(data)
        aside.replace(file)

    threads = ThreadPoolExecutor(8)
    try:
        list(threads.map(one, listed(folder)))
    finally:
        threads.shutdown(cancel_futures=True)  # after a failure, wait for no others


class Broker:
    """One node with its data in a folder; `kill` and `start` again keep the data."""

    def __init__(self, work: Path, partitions: int) -> None:
        self._work, self._process = work, None
        self.port, controller = _free_ports(2)
        work.mkdir()
        self._settings = work / "server.properties"
        self._settings.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"log.dirs={work / 'data'}\nnum.partitions={partitions}\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
        )
        format_ = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._settings)]
        subprocess.run(self._java(*format_), check=True, capture_output=True)

    def _java(self, *arguments: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = str(Path(home) / "bin" / "java") if home else "java"
        return [java, *JAVA, "-cp", str(JARS / "broker" / "*"), *arguments]

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with (self._work / "log").open("a") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._settings)), stdout=log, stderr=log
            )
        until = time.monotonic() + 120
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        self.kill()
        raise RuntimeError(f"the broker did not start: {(self._work / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


def _free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
