"""A Kafka broker for tests, on loopback, from jars that Spark's own resolver of packages fetches.

python tests/spark/kafka.py FOLDER     fetch the jars; `bin/setup dev` does, into .venv/kafka

Packages are listed with the checksums of their jars in tests/fixtures/kafka_jars.txt: `broker` is
one node of Kafka (it is its own controller), `connector` is what Spark needs to read and write
topics.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).parents[1] / "fixtures" / "kafka_jars.txt"
JARS = Path(os.environ.get("MATCHWOOD_KAFKA", Path(sys.prefix) / "kafka"))
"""Where the jars are looked for."""

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
JAVA = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
PATIENCE = 90
"""Seconds that fetching may take."""


class Jar(NamedTuple):
    """A package that is fetched: what it is for, the checksum of its jar, and its coordinates."""

    kind: str
    sha256: str
    group: str
    name: str
    version: str

    @property
    def file(self) -> str:
        return f"{self.kind}/{self.name}-{self.version}.jar"


def listed() -> list[Jar]:
    rows = [line.split() for line in LIST.read_text().splitlines()]
    return [Jar(kind, digest, *package.split(":")) for kind, digest, package in rows]


def are_there(folder: Path = JARS) -> bool:
    return all((folder / jar.file).exists() for jar in listed())


def fetch(folder: Path) -> None:
    """Fetch all jars; SystemExit if that fails, or if one is not the expected one."""
    import pyspark

    from matchwood.spark import ensure_java

    if are_there(folder):
        return
    ensure_java()
    (resolver,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    with tempfile.TemporaryDirectory() as work:
        wanted, found = Path(work, "ivy.xml"), Path(work, "found")
        wanted.write_text(_wanted())
        command = [java(), "-jar", str(resolver), "-ivy", str(wanted), "-cache", f"{work}/cache",
                   "-retrieve", f"{found}/[conf]/[artifact]-[revision].[ext]"]  # fmt: skip
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        except subprocess.SubprocessError as error:
            raise SystemExit(f"the jars of Kafka cannot be fetched: {error}") from None
        for jar in listed():
            data = (found / jar.file).read_bytes()
            if hashlib.sha256(data).hexdigest() != jar.sha256:
                raise SystemExit(f"{jar.file}: expected sha256 {jar.sha256}, found another")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(found, folder)


def _wanted() -> str:
    """The packages in the resolver's language; the list has what they depend on."""
    rows = [
        f'<dependency org="{jar.group}" name="{jar.name}" rev="{jar.version}" transitive="false" '
        f'conf="{jar.kind}->default"/>'
        for jar in listed()
    ]
    return (
        '<ivy-module version="2.0"><info organisation="matchwood" module="kafka"/><configurations>'
        '<conf name="broker"/><conf name="connector"/></configurations>'
        f'<dependencies>{"".join(rows)}<conflict manager="all"/></dependencies></ivy-module>'
    )


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


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
        return [java(), *JAVA, "-cp", str(JARS / "broker" / "*"), *arguments]

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
