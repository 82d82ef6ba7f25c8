"""The division of a feed's changes into files, by parameters of its sink's URI.

file_size=64MB             a file is ended when it has so many bytes
partition_format=hourly    into a folder for each hour
topic_prefix=eu_           before the topic in names
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ....catalog.values.errors import SQLError
from ....kvlayer.settings import SettingError, parse_bytes

FILE_BYTES = 16 << 20
"""CockroachDB's default for `file_size`."""

LAYOUT_PARAMETERS = ("file_size", "partition_format", "topic_prefix")


class PartitionFormat(Enum):
    """Into which folders files go, by the day or hour (UTC) that their names begin with."""

    DAILY = "daily"
    HOURLY = "hourly"
    FLAT = "flat"  # none


@dataclass(frozen=True, slots=True)
class FilesLayout:
    """A file is ended when it has `file_bytes` bytes or more."""

    file_bytes: int = FILE_BYTES
    partition_format: PartitionFormat = PartitionFormat.DAILY
    topic_prefix: str = ""


def read_layout(given: Mapping[str, str], bad: Callable[[str], SQLError]) -> FilesLayout:
    """The layout that the parameters of a URI ask for. Raises what `bad` makes of a reason."""
    return FilesLayout(
        _file_bytes(given.get("file_size"), bad),
        _partition_format(given.get("partition_format"), bad),
        given.get("topic_prefix", ""),
    )


def _file_bytes(text: str | None, bad: Callable[[str], SQLError]) -> int:
    if text is None:
        return FILE_BYTES
    try:
        size = parse_bytes(text)
    except SettingError:
        size = 0
    if size <= 0:
        raise bad(f"file_size is a number of bytes such as 64MB or 64MiB, not {text!r}")
    return size


def _partition_format(text: str | None, bad: Callable[[str], SQLError]) -> PartitionFormat:
    if text is None:
        return PartitionFormat.DAILY
    try:
        return PartitionFormat(text.lower())
    except ValueError:
        known = ", ".join(each.value for each in PartitionFormat)
        raise bad(f"partition_format is one of {known}, not {text!r}") from None
