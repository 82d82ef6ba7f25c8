"""Names of files, which sort in the order in which files are to be read.

    2024-01-31/202401311200001234560000000000000-…-orders-3.ndjson
    └ partition └ a timestamp at or below every change in the file

A timestamp is written as CockroachDB does: year to second, nine digits of nanoseconds, ten of the
logical part. Behind it stand the job, its claim, the attempt and the file's number, in hexadecimal
digits of fixed width, then the topic and the version of the table's schema. So of two files with
one timestamp the one that was begun later sorts later, whoever was killed between them. A mark,

    2024-01-31/202401311200001234560000000000000.RESOLVED

sorts behind the files with its timestamp, and before those with a later one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from ....kvlayer.clock import ZERO, Timestamp, format_timestamp, parse_timestamp
from ....kvlayer.history import StorePosition
from .layout import PartitionFormat

MARK_SUFFIX = ".RESOLVED"

_PARTITIONS = {
    PartitionFormat.DAILY: "%Y-%m-%d/",
    PartitionFormat.HOURLY: "%Y-%m-%d/%H/",
    PartitionFormat.FLAT: "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMaker:
    """Names the files of one attempt of a feed."""

    job_id: int
    epoch: int
    attempt: int
    partition_format: PartitionFormat
    suffix: str

    def data_file(self, at: Timestamp, number: int, topic: str, version: int) -> str:
        return (
            f"{self._partition(at)}{time_text(at)}-{job_part(self.job_id)}-{self.epoch:08x}-"
            f"{self.attempt:08x}-{number:08x}-{quote(topic, safe=' ')}-{version:x}{self.suffix}"
        )

    def mark(self, at: Timestamp) -> str:
        return f"{self._partition(at)}{time_text(at)}{MARK_SUFFIX}"

    def _partition(self, at: Timestamp) -> str:
        return _moment(at).strftime(_PARTITIONS[self.partition_format])


def job_part(job_id: int) -> str:
    """The job's part of the names of its files, behind their timestamps."""
    return f"{job_id:016x}"


def owners_folder(job_id: int) -> str:
    """The hidden folder of the marks of the job's owners."""
    return f".tailrace-{job_part(job_id)}-owners"


def owner_mark(position: StorePosition) -> str:
    """The name of the mark of an incarnation of a store, which writes from `position` on."""
    return f"{position.incarnation}-{position.index}"


def marked_position(name: str) -> StorePosition | None:
    """The position in the name of a mark; None for another file."""
    incarnation, _, index = name.rpartition("-")
    if not index.isdecimal():
        return None
    return StorePosition(incarnation=incarnation, index=int(index))


def time_text(at: Timestamp) -> str:
    """A timestamp whose texts sort as timestamps do."""
    nanoseconds, _, logical = format_timestamp(at).partition(".")
    return f"{_moment(at):%Y%m%d%H%M%S}{int(nanoseconds) % 1_000_000_000:09d}{logical}"


def time_of(name: str, job_id: int) -> Timestamp | None:
    """The timestamp that a data file of the job is named by; None for other files."""
    found = re.match(rf"(\d{{14}})(\d{{9}})(\d{{10}})-{job_part(job_id)}-", name)
    if found is None:
        return None
    second, nanoseconds, logical = found.groups()
    moment = datetime.strptime(second, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return parse_timestamp(f"{int(moment.timestamp())}{nanoseconds}.{logical}")


def last_time(partitions: Iterable[Sequence[str]], job_id: int) -> Timestamp:
    """The greatest timestamp that a data file of the job is named by; zero where there is none.
    `partitions` are the names of files, folder by folder, the later folders first."""
    for names in partitions:
        times = [at for name in names if (at := time_of(name, job_id)) is not None]
        if times:
            return max(times)
    return ZERO


def _moment(at: Timestamp) -> datetime:
    nanoseconds = int(format_timestamp(at).partition(".")[0])
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC)
