"""A real registry of schemas: Apicurio's, in memory, which speaks Confluent's protocol.

It comes from Maven Central when it is first asked for (142 MB), and starts in about five seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from benchmarks.servers import free_port

VERSION = "2.6.13.Final"
READY_SECONDS = 60.0
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"


def registry_folder() -> Path:
    """The folder with the registry's jars."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "tailrace-tests" / f"apicurio-registry-{VERSION}"
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        copy = [f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "-q", "-B", plugin, *copy], check=True)
        [archive] = folder.glob("*.tar.gz")
        subprocess.run(["tar", "xzf", archive, "-C", folder], check=True)
        archive.unlink()
        (folder / "whole").touch()
    return folder


class RegistryProcess:
    """One registry, whose contents are gone when it is killed. It refuses schemas that readers of
    earlier ones could not read, and readers of it earlier ones: `FULL` compatibility."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self._log = folder / "registry.log"
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RegistryProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when it answers."""
        java = shutil.which("java")
        assert java is not None, "python -m tests.system.programs installs java"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._port,
            "quarkus.datasource.jdbc.url": "jdbc:h2:mem:registry",
        }
        [runner] = registry_folder().glob("*-runner.jar")
        options = [f"-D{name}={value}" for name, value in settings.items()]
        command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", *options, "-jar", str(runner)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.ask("/subjects")
                break
            except (URLError, ConnectionError):
                assert time.monotonic() < deadline, self._log.read_text()[-4000:]
                assert self._process.poll() is None, self._log.read_text()[-4000:]
                time.sleep(0.05)
        self.ask("/config", {"compatibility": "FULL"}, method="PUT")

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """It takes connections from now on, and answers nothing."""
        assert self._process is not None, "not running"
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None, "not running"
        self._process.send_signal(signal.SIGCONT)

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
