"""Two servers, of which one takes its time from the other, by the commands of docs/raw.md."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from pathlib import Path

import httpx2
import pytest

from tailrace.api.demo.raw.server import free_port
from tailrace.api.joined_store import JoinTarget
from tailrace.api.node import Node, NodeOptions
from tailrace.api.refusal import NodeRefused
from tailrace.kvlayer.clock import Timestamp, parse_timestamp
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

DOCUMENT = (Path(__file__).parents[2] / "docs/raw.md").read_text()
KEY = "/v1/keyspaces/ks/keys/k"


def commands() -> tuple[list[str], list[str]]:
    """The options of the oracle's command, and of its user's."""
    found = re.findall(r"^tailrace serve (\S+) (.*)$", DOCUMENT, flags=re.M)
    by_folder = {folder: shlex.split(options) for folder, options in found}
    return by_folder["time"], by_folder["main"]


def put(server: ServerProcess) -> httpx2.Response:
    return server.client.put(f"{server.url}{KEY}", content=b"v")


def written_at(answer: httpx2.Response) -> Timestamp:
    return parse_timestamp(answer.json()["timestamp"])


def now(server: ServerProcess) -> Timestamp:
    return parse_timestamp(str(server.rows("SELECT cluster_logical_timestamp()")[0][0]))


def test_time_is_the_oracles(tmp_path: Path) -> None:
    oracle_options, main_options = commands()
    assert oracle_options[:1] == ["--rpc-port"]
    assert main_options[::2] == ["--oracle", "--oracle-token"]
    port, token = free_port(), tmp_path / main_options[3]
    taking = ("--oracle", f"127.0.0.1:{port}", "--oracle-token", str(token))
    with (
        ServerProcess(tmp_path / "time", "--rpc-port", str(port)) as oracle,
        ServerProcess(tmp_path / "main", *taking) as main,
    ):
        main.sql("CREATE KEYSPACE ks")
        before = now(oracle)
        time.sleep(1.1)  # two questions
        first = written_at(put(main))
        assert before < first < now(oracle)
        oracle.kill()
        assert written_at(put(main)) > first
        with pytest.raises(NodeRefused, match="a new store has its first time from it"):
            asyncio.run(
                Node.open(tmp_path / "new", NodeOptions(oracle=JoinTarget(taking[1], token)))
            )
        main.kill()
        main.start()
        refused = put(main)
        assert refused.status_code == 503
        assert "has not answered yet" in refused.text
        main.sql("CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
        oracle.start()
        deadline = time.monotonic() + 20
        while (answer := put(main)).status_code == 503:
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.1)
        assert written_at(answer) > first
        metrics = main.client.get(f"{main.url}/metrics").text
        assert re.search(r"^kv_oracle_age_seconds [\d.]+$", metrics, flags=re.M), metrics
