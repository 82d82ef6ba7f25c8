"""Looking inside a store: its keys, its log, its ranges, and its feeds as they run.

What lives here turns what the KV layer holds into *lines*, plain objects that are printed or sent
as JSON; `targets` says which keys are meant, and `folder` opens a data folder that nobody serves,
without changing it. The command line (`api.cli.debug`) and the server
(`api.http.routes.debug_routes`) show the same lines. It promises nothing to programs: the lines are
for people.

It must never write to a store.
"""

from .feed_lines import FeedLines
from .folder import FolderRefused, OfflineStore
from .lines import Line, key_lines, log_lines, range_lines
from .targets import Target, TargetError

__all__ = [
    "FeedLines",
    "FolderRefused",
    "Line",
    "OfflineStore",
    "Target",
    "TargetError",
    "key_lines",
    "log_lines",
    "range_lines",
]
