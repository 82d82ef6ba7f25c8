"""Reads a Delta table by the protocol's document, with nothing of delta-rs: the JSON files of its
log say which Parquet files are the table's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq


def log_actions(table: Path) -> list[list[dict[str, Any]]]:
    """The actions of each commit, in order. The log has no checkpoint yet."""
    files = sorted((table / "_delta_log").glob("*.json"))
    assert [int(file.stem) for file in files] == list(range(len(files)))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def commits(table: Path) -> list[list[dict[str, Any]]]:
    """The rows that each commit has added."""
    return [
        [
            row
            for action in actions
            if "add" in action
            for row in pq.read_table(table / unquote(action["add"]["path"])).to_pylist()
        ]
        for actions in log_actions(table)
    ]


def rows(table: Path) -> list[dict[str, Any]]:
    """The rows of a table to which rows were only ever added."""
    assert not any("remove" in action for actions in log_actions(table) for action in actions)
    return [row for commit in commits(table) for row in commit]


def states(table: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """What each commit leaves: the timestamp that it says, and the rows with the table's columns,
    of which older files may lack some."""
    names: list[str] = []
    files: dict[str, list[dict[str, Any]]] = {}
    for actions in log_actions(table):
        for action in actions:
            if "add" in action:
                path = action["add"]["path"]
                files[path] = pq.read_table(table / unquote(path)).to_pylist()
            elif "remove" in action:
                del files[action["remove"]["path"]]
            elif "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
                names = [field["name"] for field in schema["fields"]]
        rows = [row for each in files.values() for row in each]
        yield resolved_of(actions), [{name: row.get(name) for name in names} for row in rows]


def resolved_of(actions: list[dict[str, Any]]) -> int:
    """The version that a commit gives to its application."""
    (found,) = (action["txn"]["version"] for action in actions if "txn" in action)
    assert isinstance(found, int)
    return found
