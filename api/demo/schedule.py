"""A day of flights as a sequence of single-row transactions.

Each flight of the day begins as scheduled only. Its departure fills in `dep_time` and `dep_delay`,
its arrival `arr_time`, `arr_delay` and `air_time`:

    departure = time_hour + minute + dep_delay
    arrival   = departure + air_time

`arr_time` is local to the destination and orders nothing. A diverted flight has no air time; its
arrival is placed at the day's usual seven miles a minute.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

REPLAYED_DAY = dt.date(2013, 11, 27)
DEPARTURE_COLUMNS = ("dep_time", "dep_delay")
ARRIVAL_COLUMNS = ("arr_time", "arr_delay", "air_time")
_MILES_A_MINUTE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightEvent:
    """One transaction: which columns of which flight take which values, and when in that day."""

    at: dt.datetime
    key: tuple[dt.datetime, str, int]
    columns: tuple[str, ...]
    values: tuple[int | None, ...]


def on_day(flights: pa.Table, day: dt.date = REPLAYED_DAY) -> pa.BooleanArray:
    """The mask of the flights of `day`, which is local, as the columns year, month and day are."""
    same = [
        pc.equal(flights[part].combine_chunks(), getattr(day, part))
        for part in ("year", "month", "day")
    ]
    return pc.and_(pc.and_(same[0], same[1]), same[2])


def as_scheduled(flights: pa.Table, day: dt.date = REPLAYED_DAY) -> pa.Table:
    """All flights, those of `day` without what was known only on that day."""
    mask = on_day(flights, day)
    for name in DEPARTURE_COLUMNS + ARRIVAL_COLUMNS:
        position = flights.schema.get_field_index(name)
        nothing = pa.scalar(None, type=flights.schema.field(name).type)
        column = pc.if_else(mask, nothing, flights[name].combine_chunks())
        flights = flights.set_column(position, flights.schema.field(name), column)
    return flights


def day_events(flights: pa.Table, day: dt.date = REPLAYED_DAY) -> list[FlightEvent]:
    """The departures and arrivals of `day` in UTC order; cancelled flights have none."""
    events: list[FlightEvent] = []
    for row in flights.filter(on_day(flights, day)).to_pylist():
        if row["dep_time"] is None:
            continue
        key = (row["time_hour"], row["carrier"], row["flight"])
        departure = row["time_hour"] + dt.timedelta(minutes=row["minute"] + row["dep_delay"])
        minutes = row["air_time"] or row["distance"] // _MILES_A_MINUTE
        arrival = departure + dt.timedelta(minutes=minutes)
        for at, columns in ((departure, DEPARTURE_COLUMNS), (arrival, ARRIVAL_COLUMNS)):
            values = tuple(row[name] for name in columns)
            events.append(FlightEvent(at=at, key=key, columns=columns, values=values))
    events.sort(key=lambda event: (event.at, event.key, event.columns))
    return events
