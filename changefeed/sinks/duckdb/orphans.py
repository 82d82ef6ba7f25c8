"""Orphans: mirror tables of jobs that will never come back.

A job that ends releases its mirror tables. One that ended where the file could not be reached has
not: another node cancelled it, or its store was put back from a copy that is older than the job.
Whoever wants the name of a mirror table asks of its owner whether that still lives, and releases it
where it does not. So no name is lost, whatever became of its job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from .mirror_file import MirrorFile, run_whole, transaction
from .ownership import check_file, has_schema, owners_of, release_job

Lives = Callable[[int], Awaitable[bool]]
"""Whether a changefeed's job may still run."""


async def release_orphans(
    file: MirrorFile,
    names: Iterable[str],
    lives: Lives,
    *,
    store_id: str,
    job_id: int | None = None,
) -> None:
    """Releases the jobs other than `job_id` that own mirror tables of these names and do not live.

    Raises SinkRefused when the file is another store's, and duckdb.Error.
    """
    owners = await run_whole(file.lane, partial(_owners, file, [*names], store_id))
    orphaned = [owner for owner in owners if owner != job_id and not await lives(owner)]
    if orphaned:
        await run_whole(file.lane, partial(release_jobs, file, orphaned, store_id))


def _owners(file: MirrorFile, names: Sequence[str], store_id: str) -> list[int]:
    with file.using_cursor() as cursor:
        if not has_schema(cursor):
            return []
        check_file(cursor, store_id, path=file.path)
        return owners_of(cursor, names)


def release_jobs(file: MirrorFile, job_ids: Sequence[int], store_id: str) -> None:
    """In the file's lane. Raises SinkRefused when the file is another store's, and duckdb.Error."""
    with file.using_cursor() as cursor:
        if not has_schema(cursor):
            return
        check_file(cursor, store_id, path=file.path)
        with transaction(cursor):
            for job_id in job_ids:
                release_job(cursor, job_id)
