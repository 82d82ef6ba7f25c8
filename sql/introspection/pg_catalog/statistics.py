"""The statistics views of pg_catalog: what monitoring asks for, and NULL for what nobody counts.

A store counts no scans and no blocks of a table. How many sessions a database has is known, and
when these tables began to count is never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...analyze.calls.oids import index_oid
from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext
from ..described import described_tables
from ..virtual_table import RowSource

_TABLE = "relid:o schemaname:s relname:s "
_INDEX = "relid:o indexrelid:o schemaname:s relname:s indexrelname:s "
_COUNTED = (
    "seq_scan:i seq_tup_read:i idx_scan:i idx_tup_fetch:i n_tup_ins:i n_tup_upd:i n_tup_del:i "
    "n_tup_hot_upd:i n_live_tup:i n_dead_tup:i n_mod_since_analyze:i n_ins_since_vacuum:i "
    "last_vacuum:t last_autovacuum:t last_analyze:t last_autoanalyze:t vacuum_count:i "
    "autovacuum_count:i analyze_count:i autoanalyze_count:i"
)
_BLOCKS = (
    "heap_blks_read:i heap_blks_hit:i idx_blks_read:i idx_blks_hit:i toast_blks_read:i "
    "toast_blks_hit:i tidx_blks_read:i tidx_blks_hit:i"
)
_DATABASE = (
    "datid:o datname:s numbackends:i xact_commit:i xact_rollback:i blks_read:i blks_hit:i "
    "tup_returned:i tup_fetched:i tup_inserted:i tup_updated:i tup_deleted:i conflicts:i "
    "temp_files:i temp_bytes:i deadlocks:i checksum_failures:i checksum_last_failure:t "
    "blk_read_time:f blk_write_time:f session_time:f active_time:f idle_in_transaction_time:f "
    "sessions:i sessions_abandoned:i sessions_fatal:i sessions_killed:i stats_reset:t"
)


def _of_tables(counted: str) -> RowSource:
    async def rows(context: IntrospectionContext) -> Sequence[Row]:
        unknown = [None] * len(counted.split())
        return [
            (found.table.id, found.schema, found.table.name, *unknown)
            for found in await described_tables(context)
        ]

    return rows


def _of_indexes(counted: str) -> RowSource:
    async def rows(context: IntrospectionContext) -> Sequence[Row]:
        unknown = [None] * len(counted.split())
        return [
            (
                found.table.id, index_oid(found.table.id, index.id), found.schema,
                found.table.name, index.name, *unknown,
            )
            for found in await described_tables(context)
            for index in found.indexes
        ]  # fmt: skip

    return rows


async def _database_rows(context: IntrospectionContext) -> Sequence[Row]:
    sessions = Counter(session.database for session in context.services.sessions)
    databases = await context.services.catalog.descriptors.children(context.reader, 0, 0)
    unknown = [None] * (len(_DATABASE.split()) - 3)
    return [(id, name, sessions[name], *unknown) for name, id in databases]


async def _nothing(context: IntrospectionContext) -> Sequence[Row]:
    return ()


_USES_OF_INDEXES = "idx_scan:i idx_tup_read:i idx_tup_fetch:i"
_BLOCKS_OF_INDEXES = "idx_blks_read:i idx_blks_hit:i"


async def _security_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_stat_gssapi: it is declined, always."""
    return [(s.activity.process_id, False, None, False) for s in context.services.sessions]


def _one_row(columns: str) -> RowSource:
    """A table of counters that nobody keeps, but for the first: of checkpoints by the clock, and of
    archived logs, there are none."""

    async def rows(context: IntrospectionContext) -> Sequence[Row]:
        return [(0, *[None] * (len(columns.split()) - 1))]

    return rows


_WRITER = (
    "checkpoints_timed:i checkpoints_req:i checkpoint_write_time:f checkpoint_sync_time:f "
    "buffers_checkpoint:i buffers_clean:i maxwritten_clean:i buffers_backend:i "
    "buffers_backend_fsync:i buffers_alloc:i stats_reset:t"
)
_ARCHIVER = (
    "archived_count:i last_archived_wal:s last_archived_time:t failed_count:i last_failed_wal:s "
    "last_failed_time:t stats_reset:t"
)

STATISTICS: tuple[tuple[int, str, str, RowSource], ...] = (
    (600, "pg_stat_all_tables", _TABLE + _COUNTED, _of_tables(_COUNTED)),
    (601, "pg_stat_user_tables", _TABLE + _COUNTED, _of_tables(_COUNTED)),
    (602, "pg_stat_sys_tables", _TABLE + _COUNTED, _nothing),
    (603, "pg_statio_all_tables", _TABLE + _BLOCKS, _of_tables(_BLOCKS)),
    (604, "pg_statio_user_tables", _TABLE + _BLOCKS, _of_tables(_BLOCKS)),
    (605, "pg_stat_all_indexes", _INDEX + _USES_OF_INDEXES, _of_indexes(_USES_OF_INDEXES)),
    (606, "pg_stat_user_indexes", _INDEX + _USES_OF_INDEXES, _of_indexes(_USES_OF_INDEXES)),
    (607, "pg_statio_all_indexes", _INDEX + _BLOCKS_OF_INDEXES, _of_indexes(_BLOCKS_OF_INDEXES)),
    (608, "pg_statio_user_indexes", _INDEX + _BLOCKS_OF_INDEXES, _of_indexes(_BLOCKS_OF_INDEXES)),
    (609, "pg_stat_database", _DATABASE, _database_rows),
    (
        610,
        "pg_stat_replication",
        "pid:i usesysid:o usename:s application_name:s client_addr:s client_hostname:s "
        "client_port:i backend_start:t backend_xmin:i state:s sent_lsn:s write_lsn:s flush_lsn:s "
        "replay_lsn:s write_lag:s flush_lag:s replay_lag:s sync_priority:i sync_state:s "
        "reply_time:t",
        _nothing,
    ),
    (613, "pg_stat_bgwriter", _WRITER, _one_row(_WRITER)),
    (614, "pg_stat_archiver", _ARCHIVER, _one_row(_ARCHIVER)),
    (
        615,
        "pg_stat_gssapi",
        "pid:i gss_authenticated:b principal:s encrypted:b",
        _security_rows,
    ),
    (
        616,
        "pg_stat_wal_receiver",
        "pid:i status:s receive_start_lsn:s receive_start_tli:i written_lsn:s flushed_lsn:s "
        "received_tli:i last_msg_send_time:t last_msg_receipt_time:t latest_end_lsn:s "
        "latest_end_time:t slot_name:s sender_host:s sender_port:i conninfo:s",
        _nothing,
    ),
    (
        611,
        "pg_stat_user_functions",
        "funcid:o schemaname:s funcname:s calls:i total_time:f self_time:f",
        _nothing,
    ),
    (
        612,
        "pg_stat_progress_vacuum",
        "pid:i datid:o datname:s relid:o phase:s heap_blks_total:i heap_blks_scanned:i "
        "heap_blks_vacuumed:i index_vacuum_count:i max_dead_tuples:i num_dead_tuples:i",
        _nothing,
    ),
)
"""Numbers, names, columns with the letters of their types, and rows."""
