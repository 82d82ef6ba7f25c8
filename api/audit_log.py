"""The audit log: a file of JSON lines in the data folder, readable by its owner alone.

    audit.log      the newest events
    audit.log.1    the file before it, … the oldest is `.8`

A line is with the operating system before its action is acknowledged, so it outlives a killed
server; it is not synced, so a power cut may take the last lines with it.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ..catalog.rights.audit import AUDIT, AuditEvent
from ..catalog.values.errors import SQLError
from ..kvlayer.access import StoreAccess
from ..sql.results.as_of import datetime_of

AUDIT_FILE = "audit.log"
FILE_BYTES_MAX = 16 * 1024 * 1024
FILES_KEPT = 8


class AuditFile:
    """Appends events to `folder/audit.log`. The file is opened for each: it may be moved away."""

    def __init__(self, folder: Path, store: StoreAccess) -> None:
        self.path = folder / AUDIT_FILE
        self._store = store

    def record(self, event: AuditEvent) -> None:
        if not self._store.settings.get(AUDIT):
            return
        line = {"at": datetime_of(self._store.clock.last), **msgspec.to_builtins(event)}
        try:
            self._append(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise SQLError(
                "58030",
                f"the audit log {self.path} cannot be written: {error.strerror}",
                detail=f"{event.event} was not done, because it would not have been recorded.",
                hint="Make room or mend its folder, or SET CLUSTER SETTING sql.audit.enabled = "
                "false.",
            ) from error

    def _append(self, line: bytes) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(file).st_size
            if os.write(file, line) < len(line):
                os.ftruncate(file, size)
                raise OSError(28, "No space left on device")
        finally:
            os.close(file)
        if size + len(line) >= FILE_BYTES_MAX:
            self._rotate()

    def _rotate(self) -> None:
        for number in range(FILES_KEPT, 0, -1):
            before = self.path if number == 1 else self.path.with_name(f"{AUDIT_FILE}.{number - 1}")
            if before.exists():
                before.rename(self.path.with_name(f"{AUDIT_FILE}.{number}"))
