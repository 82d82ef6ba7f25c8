"""A Parquet lake that Spark's streaming sink wrote, read without Spark.

Files alone do not say what is in the lake: a batch that was cut short leaves some behind. The
folder `_spark_metadata` names those that count, a file for each batch and now and then one for all:

    _spark_metadata/8           v1, then a line of JSON for each file of batch 8
    _spark_metadata/9.compact   the same for the batches 0 to 9
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

METADATA = "_spark_metadata"
COMPACT = ".compact"
VERSION = "v1"


class _File(msgspec.Struct):
    path: str
    action: str = "add"


def lake_files(lake: Path) -> list[Path]:
    """The files that are in the lake; none before its first batch."""
    folder = lake / METADATA
    if not folder.exists():
        return []
    logs = {_batch(path): path for path in folder.iterdir() if path.name[0] not in "._"}
    compacted = max((n for n, path in logs.items() if path.suffix == COMPACT), default=0)
    files: list[Path] = []
    for number in sorted(logs):
        if number >= compacted:
            files += _named(logs[number])
    return files


def read_lake(lake: Path) -> pa.Table:
    """Every row of the lake: every change, with `_op` and `_commit_timestamp`. An empty lake has no
    columns either."""
    tables = [pyarrow.parquet.read_table(path) for path in lake_files(lake)]
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="permissive")


def final_state(changes: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The rows that stand after all changes: of each key the last, if it is no deletion."""
    stamps = changes.group_by(list(key)).aggregate([("_commit_timestamp", "max")])
    last = changes.join(
        stamps.rename_columns([*key, "_commit_timestamp"]),
        keys=[*key, "_commit_timestamp"],
        join_type="left semi",
    )
    kept = last.filter(pc.field("_op") == "upsert")
    return kept.drop_columns(["_op", "_commit_timestamp"])


def _batch(log: Path) -> int:
    return int(log.name.removesuffix(COMPACT))


def _named(log: Path) -> list[Path]:
    version, *lines = log.read_text().splitlines()
    assert version == VERSION, (log, version)
    files = [msgspec.json.decode(line, type=_File) for line in lines]
    assert all(file.action == "add" for file in files), log
    return [Path(unquote(urlsplit(file.path).path)) for file in files]
