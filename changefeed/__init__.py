"""Changefeeds: what is committed to tables goes to sinks, each row under its canonical schema.

A *changefeed* follows some tables from a start timestamp into one *sink*. Its *frontier* says how
far each span has come; the least of it, once the initial scan is complete, is its *resolved*
timestamp: everything at or below is durable in the sink. A *gate* lets a row pass when its schema
is proven. A *checkpoint* makes progress durable behind the rows that it covers.

    span feed -> memory budget -> schema gate -> decode -> sink -> frontier -> checkpoint

It promises: no committed row is lost, whatever fails; a transactional sink holds each change once,
any other at least once; a resolved message never precedes a row that it covers; a slow sink slows
its feed and nobody else; a locked table's row reaches its sink in the step in which it became
durable. It must never know SQL, sessions or protocols.

`Changefeeds` is the face for the floors above; `sinks`, `encode` and `contract` are for who writes
sinks.
"""

from .connections import CONNECTION_QUOTA, give_connections, list_connections
from .feeds import Changefeeds, FeedStatus, TaskStatus
from .insight import SpanLag, StageReport
from .jobs.alterations import (
    AddTarget,
    Alteration,
    ControlTarget,
    DropTarget,
    SetOptions,
    TargetAction,
    TargetName,
    UnsetOptions,
)
from .jobs.create import FeedRequest
from .jobs.dead_letters import DeadLetter
from .jobs.description import shown_key
from .jobs.details import SendingReport
from .jobs.replication_tasks import WORKERS_MAX
from .jobs.reservations import FEED_QUOTA, JOB_KIND
from .jobs.services import ChangefeedServices
from .pipeline.live import FeedState, FeedStopped, LiveFeed
from .pipeline.stage_times import Latency
from .schedules import SCHEDULE_KIND, SCHEDULE_QUOTA, ScheduleStatus, parse_schedule_options
from .store_jobs import JobSummary, StoreJobs
from .streams.stream import ChangefeedStream
from .subscriptions import (
    SUBSCRIPTION_QUOTA,
    Subscription,
    SubscriptionReader,
    find_subscription,
    give_subscriptions,
    list_subscriptions,
)
from .targets import DatabaseTables, KeyspacePart, find_tables
from .verify import Verified

__all__ = [
    "CONNECTION_QUOTA",
    "FEED_QUOTA",
    "JOB_KIND",
    "SCHEDULE_KIND",
    "SCHEDULE_QUOTA",
    "SUBSCRIPTION_QUOTA",
    "WORKERS_MAX",
    "AddTarget",
    "Alteration",
    "ChangefeedServices",
    "ChangefeedStream",
    "Changefeeds",
    "ControlTarget",
    "DatabaseTables",
    "DeadLetter",
    "DropTarget",
    "FeedRequest",
    "FeedState",
    "FeedStatus",
    "FeedStopped",
    "JobSummary",
    "KeyspacePart",
    "Latency",
    "LiveFeed",
    "ScheduleStatus",
    "SendingReport",
    "SetOptions",
    "SpanLag",
    "StageReport",
    "StoreJobs",
    "Subscription",
    "SubscriptionReader",
    "TargetAction",
    "TargetName",
    "TaskStatus",
    "UnsetOptions",
    "Verified",
    "find_subscription",
    "find_tables",
    "give_connections",
    "give_subscriptions",
    "list_connections",
    "list_subscriptions",
    "parse_schedule_options",
    "shown_key",
]
