"""The entry sender: what a task of Spark does with its part of a batch, on Spark's worker.

It puts entries into a replica of the keyspace, by the ingest of the replica's store, in the epoch
that the server has begun. Standard library and pyarrow only, as with everything that travels with a
query; `contract.resending`, which it shares with the node's own sender, does too.

    rows        k@100  m@110  k@120  n@130
    lane 0      k@100 k@120                    a key is in one lane, and a lane has one request
    lane 1      m@110 n@130                    under way: the versions of a key come in order
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from queue import Queue
from typing import Any
from zlib import crc32

import pyarrow as pa

from ..contract.resending import REQUEST_SECONDS, TRIES_MAX, TokenBucket, refused, tries
from .columns import COMMIT_TIMESTAMP, OPERATION, UPSERT

BYTES_MAX = 1024 * 1024
"""The size of a request's entries; a request has one entry at least."""

LANE_REQUESTS_MAX = 2
"""Requests of a lane that wait while one is under way."""

SENT = "sent"
"""The column of what a task returns: how many entries it has sent."""


class TargetRefused(Exception):
    """The target refused, and no other try would mend it."""


class TargetAway(Exception):
    """The target does not answer, or asks for patience: another attempt may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySender:
    """Sends entries, and retries by itself: a replica drops what it has.

    `place` is the path of the ingest. Deletions end `kept` after they were made.
    """

    address: str
    tls: bool
    certificates: str | None
    authorization: str = field(repr=False)
    place: str
    source: str
    epoch: int
    origin: int
    kept: int
    concurrency: int
    batch_size: int
    rate_limit: int | None
    backoff_min: float
    backoff_max: float

    def send(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The count of entries, all of which the target has acknowledged. Raises TargetRefused, and
        TargetAway."""
        bucket = _Bucket(self.rate_limit)
        lanes = [_Lane(self, bucket) for _ in range(self.concurrency)]
        sent = 0
        try:
            for batch in batches:
                for key, entry in self._entries(batch):
                    lanes[crc32(key) % len(lanes)].put(entry)
                    sent += 1
        finally:
            for lane in lanes:
                lane.end()
        for lane in lanes:
            lane.check()
        yield pa.RecordBatch.from_arrays([pa.array([sent], pa.int64())], names=[SENT])

    def _entries(self, batch: pa.RecordBatch) -> Iterator[tuple[bytes, str]]:
        names = ("key", "value", "expires_at", OPERATION, COMMIT_TIMESTAMP)
        columns = [batch.column(name).to_pylist() for name in names]
        for key, value, ends, operation, at in zip(*columns, strict=True):
            there = operation == UPSERT
            entry = {
                "key": base64.b64encode(key).decode(),
                "value": base64.b64encode(value).decode() if there else None,
                "timestamp": at,
                "expires_at": ends if there else at + self.kept,
            }
            yield key, json.dumps(entry)

    def request(self, entries: list[str]) -> bytes:
        head = json.dumps({"source": self.source, "epoch": self.epoch, "origin": self.origin})
        return f'{head[:-1]}, "entries": [{",".join(entries)}]}}'.encode()

    def connect(self) -> http.client.HTTPConnection:
        host, _, port = self.address.rpartition(":")
        host = host.strip("[]")
        if not self.tls:
            return http.client.HTTPConnection(host, int(port), timeout=REQUEST_SECONDS)
        context = ssl.create_default_context(cadata=self.certificates)
        return http.client.HTTPSConnection(
            host, int(port), timeout=REQUEST_SECONDS, context=context
        )


class _Bucket:
    """The token bucket of a task's lanes."""

    def __init__(self, rate: int | None) -> None:
        self._tokens = TokenBucket(rate)
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Waits until the entries may go."""
        with self._lock:
            wait = self._tokens.take(count, time.monotonic())
        time.sleep(wait)


class _Lane:
    """One connection, one thread, and the entries that go there."""

    def __init__(self, sender: EntrySender, bucket: _Bucket) -> None:
        self._sender = sender
        self._bucket = bucket
        self._entries: list[str] = []
        self._size = 0
        self._requests: Queue[list[str] | None] = Queue(LANE_REQUESTS_MAX)
        self._failure: Exception | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, entry: str) -> None:
        """Waits for room. Raises what has failed in this lane."""
        if self._entries and self._size + len(entry) > BYTES_MAX:
            self._pass_on()
        self._entries.append(entry)
        self._size += len(entry)
        if len(self._entries) >= self._sender.batch_size:
            self._pass_on()

    def end(self) -> None:
        """Returns when what was put is acknowledged, or has failed."""
        if self._entries:
            self._requests.put(self._entries)
            self._entries = []
        self._requests.put(None)
        self._thread.join()

    def check(self) -> None:
        """Raises what has failed."""
        if self._failure is not None:
            raise self._failure

    def _pass_on(self) -> None:
        self.check()
        self._requests.put(self._entries)
        self._entries, self._size = [], 0

    def _run(self) -> None:
        while (entries := self._requests.get()) is not None:
            if self._failure is None:  # else it is taken, so that who puts it does not wait
                try:
                    self._bucket.take(len(entries))
                    self._send(self._sender.request(entries))
                except Exception as failure:
                    self._failure = failure
        if self._connection is not None:
            self._connection.close()

    def _send(self, body: bytes) -> None:
        sender, words = self._sender, ""
        for pause in tries(sender.backoff_min, sender.backoff_max, random.Random()):
            time.sleep(pause)
            try:
                status, answer = self._ask(body)
            except (http.client.HTTPException, OSError) as error:
                if self._connection is not None:
                    self._connection.close()
                self._connection = None
                words = f"{sender.address}: {error or type(error).__name__}"
                continue
            told = _object(answer)
            if status == 200 and "epoch" in told:  # else it is a proxy's page
                return
            words = self._judge(status, told)
        raise TargetAway(f"{words} ({TRIES_MAX} tries)")

    def _ask(self, body: bytes) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._sender.connect()
        headers = {
            "content-type": "application/json",
            "authorization": self._sender.authorization,
        }
        self._connection.request("POST", self._sender.place, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _judge(self, status: int, problem: dict[str, Any]) -> str:
        """The reason for another try. Raises TargetRefused where there is none."""
        words = f"{self._sender.address}: {problem.get('title', f'HTTP status {status}')}"
        if refused(status, problem.get("sqlstate")):
            raise TargetRefused(words)
        return words


def _object(answer: bytes) -> dict[str, Any]:
    """The JSON object of an answer; empty where it is none."""
    try:
        found = json.loads(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
