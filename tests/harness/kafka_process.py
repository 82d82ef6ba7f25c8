"""A real broker of Apache Kafka, one node by itself, which a test may kill and start again.

Its jars come from Maven Central when they are first asked for.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.servers import free_port
from tests.harness.program_process import ProgramProcess
from tests.system.programs import jars_with_dependencies, java

VERSION = "4.1.0"
USER, PASSWORD = "ada", "kanari \"%'&?"


class KafkaProcess(ProgramProcess):
    """One node that is broker and controller, with its data in `folder`. At `address` it takes
    everybody, at `login_address` a USER with a PASSWORD."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "broker.log")
        self._settings = folder / "server.properties"
        port, login_port, controller = free_port(), free_port(), free_port()
        self.address, self.login_address = f"127.0.0.1:{port}", f"127.0.0.1:{login_port}"
        password = PASSWORD.replace('"', '\\\\"')
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required "
        folder.mkdir()
        self._settings.write_text(
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
        words = ("format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(self._settings))
        format = self._java("kafka.tools.StorageTool", *words)
        subprocess.run(format, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    def command(self) -> list[str]:
        return self._java("kafka.Kafka", str(self._settings))

    def answers(self) -> bool:
        try:
            self._client.list_topics(timeout=1)
        except KafkaException:
            return False
        return True

    def make_topic(self, name: str, **settings: str) -> None:
        client = self._client  # which has to live until it is answered
        made = client.create_topics([NewTopic(name, num_partitions=4, config=settings)])
        made[name].result(timeout=10)

    def topics(self) -> list[str]:
        return sorted(self._client.list_topics(timeout=10).topics)

    def drop_topic(self, name: str) -> None:
        client = self._client
        client.delete_topics([name])[name].result(timeout=10)

    @property
    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def _java(self, *words: str) -> list[str]:
        jars = jars_with_dependencies(f"kafka-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}")
        return java("-cp", f"{jars}/*", *words)
