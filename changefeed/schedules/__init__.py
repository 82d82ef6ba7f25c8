"""Schedules: changefeeds that scan their tables again and again, at the times of a crontab.

A *schedule* is a job that is never done by itself: one node claims it, sleeps until its next run,
and then makes a changefeed with `initial_scan = 'only'`, in one transaction with the time of the
run after that. So a run is made once, however many nodes there are and whatever is killed. A run
whose time passed while no node lived is made once, at once.
"""

from .schedule import (
    SCHEDULE_KIND,
    SCHEDULE_QUOTA,
    ScheduleOptions,
    ScheduleStatus,
    decode_schedule,
    encode_schedule,
    parse_schedule_options,
)
from .schedule_job import ScheduleJob, describe_schedule, plan_schedule, schedule_status

__all__ = [
    "SCHEDULE_KIND",
    "SCHEDULE_QUOTA",
    "ScheduleJob",
    "ScheduleOptions",
    "ScheduleStatus",
    "decode_schedule",
    "describe_schedule",
    "encode_schedule",
    "parse_schedule_options",
    "plan_schedule",
    "schedule_status",
]
