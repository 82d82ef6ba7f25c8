"""Jobs: work that outlives the statement that asked for it, and the node that began it.

What lives here: the states of a job and what leads from one to another (`states`), its rows
(`record`, `job_store`), and the registry, which creates jobs, carries out requests on them, and
claims and runs those that are free. A job's kind is a name; what runs jobs of that kind is a
*resumer*, which whoever assembles the node hands in. Changefeeds and schema changes are jobs.

It promises that a job has at most one holder whose writes count: each *claim* bears a greater
*epoch* than the one before, and what is done under an older one is refused. A claim stands on its
node's liveness session and is free when that ends. A job that fails in a way that can be mended is
tried again, with pauses that double up to half a minute and begin anew when its progress moved.

It must never know what a job does.
"""

from .errors import JobFenced, JobNotFound, JobPaused, JobStateRefused, RetryableJobError
from .record import JobRecord
from .registry import RETENTION, JobRegistry
from .resumer import JobContext, Resumer
from .runner import BACKOFF_MAX, BACKOFF_MIN, Backoff
from .states import JobAction, JobState

__all__ = [
    "BACKOFF_MAX",
    "BACKOFF_MIN",
    "RETENTION",
    "Backoff",
    "JobAction",
    "JobContext",
    "JobFenced",
    "JobNotFound",
    "JobPaused",
    "JobRecord",
    "JobRegistry",
    "JobState",
    "JobStateRefused",
    "Resumer",
    "RetryableJobError",
]
