"""A replication's first backup: what its target is restored from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp
from ...kvlayer.protected_timestamp import ProtectionRefused
from ..sinks.protocol import SinkError, SinkRefused
from .folder import BackupRefused
from .keyspace_backup import KeyspaceBackups


class Bootstrap:
    """Implements `sinks.tailrace.BackupMaker`. `folder_of` is the folder that a URI names."""

    def __init__(
        self,
        backups: KeyspaceBackups,
        descriptors: DescriptorStore,
        folder_of: Callable[[str], Path],
    ) -> None:
        self._backups = backups
        self._descriptors = descriptors
        self._folder_of = folder_of

    def check(self, uri: str) -> None:
        """Raises SQLError for what names no folder."""
        self._folder_of(uri)

    async def back_up(self, keyspace_id: int, name: str, at: Timestamp, uri: str) -> None:
        """Makes the backup as of `at`, unless an attempt before has. Raises SinkError and
        SinkRefused."""
        try:
            path = self._folder_of(uri)
            if await self._backups.holds(path, keyspace_id, at):
                return
            keyspace = await self._descriptors.read_at(keyspace_id, at)
            if not isinstance(keyspace, TableDescriptor):
                raise SinkRefused(f"keyspace {name} is not there any more")
            await self._backups.write(keyspace, name, at, path)
        except (BackupRefused, ProtectionRefused) as refused:
            raise SinkRefused(str(refused)) from refused
        except SQLError as error:  # the roots were others when the replication was created
            raise SinkRefused(error.message) from error
        except OSError as error:
            raise SinkError(f"the backup in {uri} cannot be written: {error}") from error
