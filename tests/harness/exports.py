"""What the export endpoints answer, and an exact model of a table's versions beside it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx2
import pyarrow as pa

from tailrace.kvlayer.clock import Timestamp, parse_timestamp
from tests.harness.http_door import HttpDoor, problem_of

Row = dict[str, Any]


@dataclass(slots=True)
class VersionModel:
    """A table `(k INT8 PRIMARY KEY, v STRING)`, and every version that was written to it."""

    door: HttpDoor
    born: int
    """A timestamp at which the table was there, and empty."""

    versions: list[tuple[int, int, str | None]] = field(default_factory=list)
    """(commit timestamp, key, value or None for a deletion), in order of time."""

    rows: dict[int, str] = field(default_factory=dict)

    def commit(self, changes: dict[int, str | None]) -> Timestamp:
        """Writes the changes in one transaction. Keys to delete must be there."""
        texts, parameters = [], []
        for key, value in changes.items():
            if value is None:
                texts.append(f"DELETE FROM t WHERE k = {key}")
            else:
                parameters.append(value)
                texts.append(f"UPSERT INTO t VALUES ({key}, ${len(parameters)})")
        result = self.door.sql("; ".join(["BEGIN", *texts, "COMMIT"]), *parameters)[-1]
        at = parse_timestamp(result["commit_timestamp"])
        for key, value in sorted(changes.items()):
            self.versions.append((at, key, value))
            if value is None:
                del self.rows[key]
            else:
                self.rows[key] = value
        return at

    def run(self, random: Random, commits: int, *, keys: int = 40) -> list[Timestamp]:
        """Random transactions of one to five changes. Their timestamps."""
        made = []
        for number in range(commits):
            chosen = random.sample(range(keys), random.randint(1, 5))
            changes: dict[int, str | None] = {}
            for key in chosen:
                gone = key in self.rows and random.random() < 0.3
                changes[key] = None if gone else f"v{number}"
            made.append(self.commit(changes))
        return made

    def between(self, after: int, upto: int) -> list[Row]:
        """What an export of `(after, upto]` must hold, in order."""
        return [
            {
                "k": key,
                "v": value,
                "_op": "delete" if value is None else "upsert",
                "_commit_timestamp": at,
            }
            for at, key, value in self.versions
            if after < at <= upto
        ]

    def at(self, when: int) -> list[Row]:
        """What a snapshot must hold."""
        found: dict[int, str] = {}
        for at, key, value in self.versions:
            if at <= when:
                found.pop(key, None)
                if value is not None:
                    found[key] = value
        return [{"k": key, "v": found[key]} for key in sorted(found)]


@dataclass(frozen=True, slots=True)
class Exported:
    """An export that was read whole: its batches, each with its mark."""

    schema: pa.Schema
    batches: list[tuple[pa.RecordBatch, str]]

    @property
    def rows(self) -> list[Row]:
        return [row for batch, _ in self.batches for row in batch.to_pylist()]


def export(door: HttpDoor, table: str = "t", **query: Any) -> Exported:
    answer = ask_export(door, table, **query)
    assert answer.status_code == 200, answer.text
    with pa.ipc.open_stream(io.BytesIO(answer.content)) as reader:
        batches = [
            (batch, metadata[b"mark"].decode())
            for batch, metadata in reader.iter_batches_with_custom_metadata()
        ]
        return Exported(reader.schema, batches)


def ask_export(door: HttpDoor, table: str = "t", **query: Any) -> httpx2.Response:
    """`after` and `upto` stand for `from` and `to`; lists are sent as JSON."""
    names = {"after": "from", "upto": "to"}
    asked = {
        names.get(name, name): json.dumps(value) if isinstance(value, list) else str(value)
        for name, value in query.items()
    }
    return door.client.get(f"/v1/tables/{table}/export", params=asked)


def refused_export(door: HttpDoor, table: str = "t", **query: Any) -> dict[str, Any]:
    return problem_of(ask_export(door, table, **query))


def spans_of(door: HttpDoor, table: str = "t", **query: object) -> dict[str, Any]:
    answer = door.client.get(
        f"/v1/tables/{table}/spans", params={name: str(value) for name, value in query.items()}
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def now(door: HttpDoor) -> int:
    """The store's clock."""
    return int(spans_of(door, "t", cut=False)["as_of"])
