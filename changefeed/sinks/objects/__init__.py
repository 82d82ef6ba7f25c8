"""Files of changes in buckets of object stores: S3 and what speaks its protocol, Google Cloud
Storage, Azure Blob Storage.

The files, their names and marks are those of `changefeed.sinks.files`. An object is written whole
here first and then sent, so a bucket never shows half a file, whatever fails. Changes arrive at
least once.
"""

from .kind import ObjectsKind
from .location import SCHEMES

__all__ = ["SCHEMES", "ObjectsKind"]
