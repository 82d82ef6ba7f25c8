"""A real broker of Apache Kafka, one node by itself, which a test may kill and start again.

Its jars come from Maven Central when they are first asked for.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.servers import free_port

VERSION = "4.1.0"
READY_SECONDS = 60.0
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>broker</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{VERSION}</version></dependency></dependencies></project>"""


def kafka_jars() -> Path:
    """The folder with Kafka's jars."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "tailrace-tests" / f"kafka-{VERSION}"
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_POM)
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        subprocess.run(
            ["mvn", "-q", "-B", plugin, f"-DoutputDirectory={folder}"], cwd=folder, check=True
        )
        (folder / "whole").touch()
    return folder


USER, PASSWORD = "ada", "kanari \"%'&?"


class KafkaProcess:
    """One node that is broker and controller, with its data in `folder`. At `address` it takes
    everybody, at `login_address` a USER with a PASSWORD."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, login_port, controller = free_port(), free_port(), free_port()
        self.address, self.login_address = f"127.0.0.1:{port}", f"127.0.0.1:{login_port}"
        password = PASSWORD.replace('"', '\\\\"')
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required "
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        (folder / "server.properties").write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://{self.address},SASL_PLAINTEXT://{self.login_address},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} user_{USER}="{password}";
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
num.partitions=4
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=300
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
"""
        )
        self._java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c",
                   str(folder / "server.properties")).wait()  # fmt: skip

    def __enter__(self) -> KafkaProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when it answers."""
        self._process = self._java("kafka.Kafka", str(self._folder / "server.properties"))
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                client.list_topics(timeout=1)
                return
            except KafkaException:
                log = (self._folder / "broker.log").read_text()[-4000:]
                assert time.monotonic() < deadline and self._process.poll() is None, log

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def make_topic(self, name: str, **settings: str) -> None:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        made = client.create_topics([NewTopic(name, num_partitions=4, config=settings)])
        made[name].result(timeout=10)

    def topics(self) -> list[str]:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        return sorted(client.list_topics(timeout=10).topics)

    def drop_topic(self, name: str) -> None:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        client.delete_topics([name])[name].result(timeout=10)

    def _java(self, *words: str) -> subprocess.Popen[bytes]:
        with (self._folder / "broker.log").open("ab") as log:
            return subprocess.Popen(self._command(*words), stdout=log, stderr=log, cwd=self._folder)

    def _command(self, *words: str) -> list[str]:
        java = shutil.which("java")
        assert java is not None, "python -m tests.system.programs installs java"
        return [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars()}/*", *words]
