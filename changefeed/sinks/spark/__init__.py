"""The lake sink: `spark+parquet:///orders?master=local[2]`.

The rows are written by a structured streaming application of Spark, in a process of its own, which
reads them from this server over HTTP (`changefeed.spark`). Here it is only started, watched and
stopped: the feed's job is its life. Promises: each change is in the lake once, whatever is killed;
the application ends with the server that started it. Never imports pyspark.
"""

from .application import LakeServer
from .kind import SparkKind
from .location import FORMATS, SCHEME_PREFIX, LakeLocation
from .replica_kind import SparkReplicaKind

__all__ = [
    "FORMATS",
    "SCHEME_PREFIX",
    "LakeLocation",
    "LakeServer",
    "SparkKind",
    "SparkReplicaKind",
]
