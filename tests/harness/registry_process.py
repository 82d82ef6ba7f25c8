"""A real registry of schemas: Apicurio's, in memory, which speaks Confluent's protocol.

It comes from Maven Central when it is first asked for (142 MB), and starts in about five seconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from benchmarks.servers import free_port
from tests.harness.program_process import ProgramProcess
from tests.system.programs import java, unpacked_jars

APICURIO = "io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all"


class RegistryProcess(ProgramProcess):
    """One registry, whose contents are gone when it is killed. It refuses schemas that readers of
    earlier ones could not read, and readers of it earlier ones: `FULL` compatibility."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "registry.log")
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def command(self) -> list[str]:
        [runner] = unpacked_jars(APICURIO).glob("*-runner.jar")
        return java(
            "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self._port}",
            "-Dquarkus.datasource.jdbc.url=jdbc:h2:mem:registry",
            "-jar",
            str(runner),
        )

    def answers(self) -> bool:
        try:
            self.ask("/subjects")
        except OSError:
            return False
        return True

    def start(self) -> None:
        super().start()
        self.ask("/config", {"compatibility": "FULL"}, method="PUT")

    @property
    def subjects(self) -> list[str]:
        found: list[str] = self.ask("/subjects")
        return sorted(found)

    def versions(self, subject: str) -> list[int]:
        found: list[int] = self.ask(f"/subjects/{quote(subject, safe='')}/versions")
        return found

    def schema(self, id: int) -> Any:
        """The schema of an id."""
        return json.loads(self.ask(f"/schemas/ids/{id}")["schema"])

    def ask(self, path: str, body: object = None, *, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        try:
            with urlopen(Request(self.url + path, data, headers, method=method)) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 503:
                raise ConnectionError from error
            raise AssertionError(f"{path}: {error.code} {error.read()!r}") from error
