"""Backups: one state of a store in a folder, taken while the store is served or stopped.

A *backup* is a folder of files and a list of them, which says that the backup is whole; `folder`
writes and restores it. `stored_file` is what it is written from: files in order, out of a stopped
data folder or out of the stream in which a server sends them. `served` makes that stream, from a
*checkpoint* of the engine, which is one state of the store whatever is written meanwhile.

A backup has the store and nothing beside it: no mirrors, no audit log, no tokens, and not the key
of the store's secrets, so that it tells none of them.
"""

from .folder import BackupList, restore_backup, write_backup
from .served import ServedBackup
from .stored_file import BackupRefused, StoredFile, received_files, stopped_store

__all__ = [
    "BackupList",
    "BackupRefused",
    "ServedBackup",
    "StoredFile",
    "received_files",
    "restore_backup",
    "stopped_store",
    "write_backup",
]
