"""The year of flights through psql's \\copy, there and back, in each of COPY's forms."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute
import pyarrow.csv
import pytest

from tailrace.api.demo.flights import FLIGHTS, read_table
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

FLIGHTS_COUNT = 336_776


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with all flights in the table `flights`, which came by CSV."""
    folder = tmp_path_factory.mktemp("flights")
    source = folder / "flights.csv"
    pyarrow.csv.write_csv(
        read_table("flights"), source, pyarrow.csv.WriteOptions(quoting_style="needed")
    )
    with ServerProcess(folder / "data", "--insecure") as process:
        psql(process, FLIGHTS.create)
        psql(process, f"\\copy flights FROM '{source}' (FORMAT csv, HEADER)")
        yield process


def psql(server: ServerProcess, command: str) -> str:
    found = shutil.which("psql")
    assert found is not None, "psql is not installed"
    done = subprocess.run(
        [found, "-XAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "root",
         "-p", str(server.pg_port), "-d", "defaultdb", "-c", command],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_flights_came_whole(server: ServerProcess) -> None:
    given = read_table("flights")
    sums = "count(*), count(dep_delay), sum(distance), sum(arr_delay), count(DISTINCT tailnum)"
    delays, numbers = given["dep_delay"], given["tailnum"]
    assert psql(server, f"SELECT {sums} FROM flights").strip().split("|") == [
        str(FLIGHTS_COUNT),
        str(len(delays) - delays.null_count),
        str(pyarrow.compute.sum(given["distance"])),
        str(pyarrow.compute.sum(given["arr_delay"])),
        str(len(numbers.unique().drop_null())),
    ]


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_flights_go_there_and_back_unchanged(
    server: ServerProcess, tmp_path: Path, form: str
) -> None:
    out, copied = tmp_path / "out", f"flights_{form}"
    psql(server, FLIGHTS.create.replace("flights", copied, 1))
    said = psql(server, f"\\copy flights TO '{out}' (FORMAT {form})")
    assert said.strip() == f"COPY {FLIGHTS_COUNT}"
    said = psql(server, f"\\copy {copied} FROM '{out}' (FORMAT {form})")
    assert said.strip() == f"COPY {FLIGHTS_COUNT}"
    assert psql(server, f"SELECT count(*) FROM {copied}").strip() == str(FLIGHTS_COUNT)
    missing = f"SELECT count(*) FROM (SELECT * FROM flights EXCEPT SELECT * FROM {copied}) AS m"
    assert psql(server, missing).strip() == "0"
