"""Backups of one keyspace: its entries as of a timestamp, in a folder of Parquet files.

    BACKUP.json     of what and when it is, and each file's keys, size and digest; written last
    0001.parquet    the entries of a range: key, value, expires_at, timestamp
    0002.parquet    those of the next

An entry keeps the timestamp at which it was written, so a replica that is restored from a backup
goes on as one: its source sends what is above the backup's timestamp. Nothing here asks what a file
is a backup of but `keyspace_backup`. (`api.backup` copies a whole store.)
"""

from .bootstrap import Bootstrap
from .folder import BackupRefused
from .keyspace_backup import BACKUP_QUOTA, KeyspaceBackups, OpenedBackup
from .manifest import BackupFile, Manifest

__all__ = [
    "BACKUP_QUOTA",
    "BackupFile",
    "BackupRefused",
    "Bootstrap",
    "KeyspaceBackups",
    "Manifest",
    "OpenedBackup",
]
