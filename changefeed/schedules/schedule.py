"""The definition of a schedule and its progress: the bytes of its job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

import msgspec
from cronsim import CronSim, CronSimError

from ...catalog.descriptors.system_tables import JOBS
from ...catalog.rights.quotas import owned_rows
from ...catalog.values.errors import SQLError
from ..jobs.details import ChangefeedDetails, UnknownFormat

SCHEDULE_KIND = "CHANGEFEED SCHEDULE"

SCHEDULE_QUOTA = owned_rows(
    "schedules",
    "changefeed.schedules",
    100,
    1_000,
    remedy="DROP SCHEDULE",
    table=JOBS,
    kind=SCHEDULE_KIND,
)
SCHEDULE_FORMAT = 1

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class FailurePolicy(Enum):
    """The actions behind a run that failed."""

    RESCHEDULE = "reschedule"  # the next one comes at its time
    RETRY = "retry"  # another one, a minute later
    PAUSE = "pause"  # the schedule is paused


class OverlapPolicy(Enum):
    """The actions when a run is due and the one before is not over."""

    WAIT = "wait"  # it begins when that one is over
    SKIP = "skip"  # it is left out
    START = "start"  # both run


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """`first_run` is in seconds of Unix time: None is when the crontab says."""

    first_run: float | None = None
    on_execution_failure: FailurePolicy = FailurePolicy.RESCHEDULE
    on_previous_running: OverlapPolicy = OverlapPolicy.WAIT


class ScheduleDetails(msgspec.Struct, frozen=True, kw_only=True):
    """`feed` is the changefeed that each run makes, as it was planned for the statement."""

    format: int = SCHEDULE_FORMAT
    label: str
    crontab: str
    on_execution_failure: FailurePolicy
    on_previous_running: OverlapPolicy
    feed: ChangefeedDetails


class ScheduleProgress(msgspec.Struct, frozen=True, kw_only=True):
    """`watched` is the job of the latest run, 0 when it is over and seen to; `error` why the latest
    run failed, empty where it did not."""

    format: int = SCHEDULE_FORMAT
    next_run: float
    watched: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStatus:
    """A schedule as SHOW SCHEDULES prints it. `next_run` is None while it is paused. `run` is the
    job of the run that is under way, or 0."""

    id: int
    label: str
    paused: bool
    next_run: datetime | None
    error: str
    crontab: str
    run: int
    owner: str
    created: datetime
    description: str


_encode = msgspec.msgpack.Encoder().encode
_details = msgspec.msgpack.Decoder(ScheduleDetails)
_progress = msgspec.msgpack.Decoder(ScheduleProgress)


def encode_schedule(schedule: ScheduleDetails | ScheduleProgress) -> bytes:
    return _encode(schedule)


def decode_schedule(payload: bytes) -> ScheduleDetails:
    """Raises UnknownFormat."""
    return _known(_details.decode(payload))


def decode_schedule_progress(progress: bytes) -> ScheduleProgress:
    """Raises UnknownFormat."""
    return _known(_progress.decode(progress))


S = TypeVar("S", ScheduleDetails, ScheduleProgress)


def _known(schedule: S) -> S:
    if schedule.format != SCHEDULE_FORMAT:
        raise UnknownFormat(f"schedule of format {schedule.format}")
    return schedule


def next_run(crontab: str, after: float) -> float:
    """The first time of the crontab, in UTC, after a Unix time. Raises SQLError 22023 where there
    is none."""
    text = MACROS.get(crontab.strip().lower(), crontab)
    try:
        fields = CronSim(text, datetime.fromtimestamp(after, UTC))
        if len(text.split()) != 5:
            raise CronSimError("it has five fields, from minutes to days of the week")
        return next(fields).timestamp()
    except CronSimError as error:
        raise SQLError(
            "22023",
            f"{crontab!r} is no crontab: {error}",
            hint="For example '0 3 * * *', each night at three, or "
            f"{', '.join(sorted(MACROS))}. Times are in UTC.",
        ) from None
    except StopIteration:
        raise SQLError("22023", f"crontab {crontab!r} names no time that comes") from None


def parse_schedule_options(given: Mapping[str, str | None], now: float) -> ScheduleOptions:
    """The options behind WITH SCHEDULE OPTIONS. Raises SQLError 22023."""
    options = ScheduleOptions()
    for name, text in given.items():
        match name.lower():
            case "first_run":
                options = replace(options, first_run=_first_run(text, now))
            case "on_execution_failure":
                failure = _choice(FailurePolicy, name, text)
                options = replace(options, on_execution_failure=failure)
            case "on_previous_running":
                overlap = _choice(OverlapPolicy, name, text)
                options = replace(options, on_previous_running=overlap)
            case _:
                raise SQLError(
                    "22023",
                    f"unknown schedule option {name!r}",
                    hint="Known options: first_run, on_execution_failure, on_previous_running.",
                )
    return options


def _first_run(text: str | None, now: float) -> float:
    if text is not None and text.strip().lower() == "now":
        return now
    try:
        at = datetime.fromisoformat((text or "").strip())
    except ValueError:
        raise SQLError(
            "22023",
            f"schedule option first_run is 'now' or a date and time, not {text!r}",
            hint="For example '2030-01-31 03:00:00+00'.",
        ) from None
    first = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    if first < now:
        raise SQLError("22023", f"schedule option first_run is in the past: {text!r}")
    return first


P = TypeVar("P", FailurePolicy, OverlapPolicy)


def _choice(kind: type[P], name: str, text: str | None) -> P:
    try:
        return kind((text or "").strip().lower())
    except ValueError:
        known = ", ".join(member.value for member in kind)
        message = f"schedule option {name} is one of {known}, not {text!r}"
        raise SQLError("22023", message) from None
