"""What a task of Spark sends to a replica's store: over HTTP, to a target that answers as told."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tailrace.changefeed.contract.resending import TRIES_MAX
from tailrace.changefeed.spark.entry_sender import EntrySender, TargetAway, TargetRefused
from tailrace.changefeed.spark.source import travelling_modules
from tests.harness.spark_cluster import bare_python

KEPT = 1_000


@dataclass
class Target:
    """Answers with `said`, one after the other, and then takes what comes."""

    said: list[tuple[int, object]] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    lock: Lock = field(default_factory=Lock)

    def answer(self, body: bytes) -> tuple[int, object]:
        with self.lock:
            self.asked += 1
            if self.said:
                return self.said.pop(0)
            self.taken.append(json.loads(body))
            return 200, {"epoch": 4, "resolved": 0}

    def values(self) -> list[tuple[str, int]]:
        return [
            (base64.b64decode(entry["key"]).decode(), entry["timestamp"])
            for sent in self.taken
            for entry in sent["entries"]
        ]


@contextmanager
def serving(target: Target) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            assert self.path == "/v1/keyspaces/ks/ingest", self.path
            assert self.headers["authorization"] == "Basic secret"
            status, problem = target.answer(self.rfile.read(int(self.headers["content-length"])))
            text = json.dumps(problem).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def sender(address: str, *, concurrency: int = 2, batch_size: int = 3) -> EntrySender:
    return EntrySender(
        address=address,
        tls=False,
        certificates=None,
        authorization="Basic secret",
        place="/v1/keyspaces/ks/ingest",
        source="s/7",
        epoch=4,
        origin=9,
        kept=KEPT,
        concurrency=concurrency,
        batch_size=batch_size,
        rate_limit=None,
        backoff_min=0.001,
        backoff_max=0.002,
    )


Version = tuple[str, str | None, int, int | None]
"""A key, its value or None, its timestamp, and when it ends."""


def batch(*versions: Version) -> pa.RecordBatch:
    keys, values, stamps, ends = zip(*versions, strict=True)
    return pa.RecordBatch.from_pydict(
        {
            "key": [key.encode() for key in keys],
            "value": [None if value is None else value.encode() for value in values],
            "expires_at": pa.array(ends, pa.int64()),
            "_op": ["delete" if value is None else "upsert" for value in values],
            "_commit_timestamp": pa.array(stamps, pa.int64()),
        }
    )


def sent_by(found: EntrySender, *batches: pa.RecordBatch) -> int:
    (told,) = found.send(iter(batches))
    count: int = told.column("sent")[0].as_py()
    return count


def test_entries_bear_their_own_timestamps_and_ends() -> None:
    target = Target()
    with serving(target) as address:
        assert sent_by(sender(address), batch(("a", "1", 5, 80), ("a", None, 6, None))) == 2
    (sent,) = target.taken
    assert (sent["source"], sent["epoch"], sent["origin"]) == ("s/7", 4, 9)
    first, second = sent["entries"]
    assert first == {"key": "YQ==", "value": "MQ==", "timestamp": 5, "expires_at": 80}
    assert second == {"key": "YQ==", "value": None, "timestamp": 6, "expires_at": 6 + KEPT}


def test_versions_of_a_key_come_in_order_however_many_lanes() -> None:
    target = Target()
    versions: list[Version] = [("abcde"[n % 5], str(n), n + 1, None) for n in range(200)]
    with serving(target) as address:
        parts = batch(*versions[:90]), batch(*versions[90:])
        assert sent_by(sender(address, concurrency=3), *parts) == 200
    assert sorted(target.values()) == sorted((key, at) for key, _, at, _ in versions)
    for key in "abcde":
        stamps = [at for found, at in target.values() if found == key]
        assert stamps == sorted(stamps)
    assert max(len(sent["entries"]) for sent in target.taken) == 3


def test_what_is_not_taken_is_sent_again() -> None:
    target = Target(said=[(503, {"title": "not yet"}), (507, {"title": "full"})])
    with serving(target) as address:
        assert sent_by(sender(address, concurrency=1), batch(("a", "1", 5, None))) == 1
    assert (target.asked, target.values()) == (3, [("a", 5)])


@pytest.mark.parametrize("status", [200, 502])
@pytest.mark.parametrize("page", ["A proxy is being restarted.", {}])
def test_what_a_proxy_answers_acknowledges_nothing(status: int, page: object) -> None:
    target = Target(said=[(status, page)])
    with serving(target) as address:
        assert sent_by(sender(address, concurrency=1), batch(("a", "1", 5, None))) == 1
    assert (target.asked, target.values()) == (2, [("a", 5)])


def test_a_target_that_stays_away_is_left_to_the_next_attempt() -> None:
    target = Target(said=[(507, {"title": "the log is full"})] * TRIES_MAX)
    with serving(target) as address, pytest.raises(TargetAway, match="the log is full"):
        sent_by(sender(address, concurrency=1), batch(("a", "1", 5, None)))


def test_a_refusal_is_told_and_nothing_else_is_sent_there() -> None:
    target = Target(said=[(409, {"title": "epoch 4 is over", "sqlstate": "55000"})])
    versions: list[Version] = [("a", str(n), n + 1, None) for n in range(100)]
    with serving(target) as address, pytest.raises(TargetRefused, match="epoch 4 is over"):
        sent_by(sender(address), batch(*versions))
    assert target.values() == [], "a later version came without an earlier one"


RUN = """
import importlib.util, pickle, sys
assert importlib.util.find_spec("tailrace") is None
send = pickle.load(open(sys.argv[1], "rb"))
(told,) = send(iter(()))
print(told.column("sent")[0])
"""


def test_its_code_travels_with_it(tmp_path: Path) -> None:
    """Spark's workers have PySpark and pyarrow, and no Tailrace."""
    modules, sending = travelling_modules(), tmp_path / "sending"
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        sending.write_bytes(cloudpickle.dumps(sender("127.0.0.1:1").send))  # type: ignore[no-untyped-call]
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    python = bare_python(tmp_path / "python")
    told = subprocess.run(
        [python, "-c", RUN, sending], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert told.stdout == "0\n", told.stderr
