"""A standalone Spark cluster on loopback: a master and its workers, out of PySpark's own files.

    with SparkCluster(folder) as cluster, cluster.session("reads") as session:
        session.read…

Its Python workers run in an environment of their own, which has what Tailrace needs and not
Tailrace itself: whatever runs there came with the query.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow
import pyspark
from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
WORKERS = 2
WORKER_PYTHON = "PYSPARK_PYTHON"
"""Where PySpark reads which interpreter its workers run, on every machine."""

PATIENCE_SECONDS = 300.0
_SPARK_HOME = Path(pyspark.__file__).parent
_PACKAGES = Path(pyarrow.__file__).parent.parent


class SparkCluster:
    """Processes of this machine, which end with the `with`. Their output is in `folder`."""

    def __init__(self, folder: Path, *, workers: int = WORKERS) -> None:
        self._folder = folder
        self._workers = workers
        folder.mkdir(parents=True, exist_ok=True)
        self.python = bare_python(folder / "python")
        self.master = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SparkCluster:
        try:
            self._start("master", "org.apache.spark.deploy.master.Master")
            self.master = f"spark://{LOOPBACK}:{self._said('master', 'Starting Spark master at ')}"
            for number in range(self._workers):
                name = f"worker{number}"
                self._start(
                    name,
                    "org.apache.spark.deploy.worker.Worker",
                    *("--cores", "4", "--memory", "2g"),
                    *("--work-dir", str(self._folder / name)),
                    self.master,
                )
            for number in range(self._workers):
                self._said(f"worker{number}", "Successfully registered with master ")
        except BaseException:
            self._stop()
            raise
        return self

    def applications(self) -> set[str]:
        """The applications that have run something on a worker."""
        return {place.name for place in self._folder.glob("worker*/app-*")}

    @contextlib.contextmanager
    def session(self, name: str) -> Iterator[SparkSession]:
        """A driver in this process. There may be one at a time."""
        builder = SparkSession.builder.appName(name)
        for key, value in self.settings().items():
            builder = builder.config(key, value)
        before = os.environ.get(WORKER_PYTHON)
        os.environ[WORKER_PYTHON] = str(self.python)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()
            if before is None:
                del os.environ[WORKER_PYTHON]
            else:
                os.environ[WORKER_PYTHON] = before

    def settings(self) -> dict[str, str]:
        """What a driver on this cluster runs with: two cores, one of each worker."""
        return {
            "spark.master": self.master,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.ui.enabled": "false",
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "600m",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
        }

    def _start(self, name: str, main: str, *arguments: str) -> None:
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [
                    str(_SPARK_HOME / "bin" / "spark-class"),
                    main,
                    *("--host", LOOPBACK, "--port", "0", "--webui-port", "0"),
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "SPARK_HOME": str(_SPARK_HOME), "SPARK_LOCAL_IP": LOOPBACK},
            )
        self._processes.append(process)

    def _said(self, name: str, what: str) -> str:
        """What follows `what` in the process's output: the port, at the end of its line."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            text = self._log(name).read_text(errors="replace")
            if what in text and "\n" in (rest := text.partition(what)[2]):
                return rest.splitlines()[0].rpartition(":")[2].strip()
            assert time.monotonic() < deadline, f"{name} does not start: {text[-2000:]}"
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(PATIENCE_SECONDS)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()


def bare_python(folder: Path) -> Path:
    """The interpreter of an environment that has our packages' libraries, and not Tailrace.

    A path file adds the folder of libraries without running the path files that lie in it, one of
    which is Tailrace's own.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "lib" / version / "site-packages" / "libraries.pth").write_text(f"{_PACKAGES}\n")
    return folder / "bin" / "python"
