"""The schema changer: carries a schema change out, stage by stage, as a job.

A version and the progress that says so are written in one transaction, under the job's claim. So
whoever takes the job up, after whatever crash, begins exactly where it got to; and whoever lost it
publishes nothing, and backfills nothing, any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from msgspec.structs import replace as with_fields

from ...kvlayer.access import StoreAccess, Transaction, committed
from ...kvlayer.engine import EngineDamaged
from ...kvlayer.errors import KeyTooLarge, RetryableTransaction, StoreClosed
from ...kvlayer.keys import index_span, table_span
from ...kvlayer.raw import keyspace_span
from ...kvlayer.span import Span
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.elements import CheckConstraint, ForeignKey, IndexKind
from ..jobs import JobContext
from ..jobs.errors import RETRYABLE, JobFenced, RetryableJobError, message_of
from ..leases import LeaseManager, LeaseWaitTimeout
from ..store.catalog_changes import CatalogChanges
from ..store.descriptor_store import DescriptorStore
from ..values.errors import SQLError
from .backfill import backfill_index, remove_data
from .evaluator import RowEvaluator
from .moves import apply_stage
from .payload import SchemaChange, SchemaChangeProgress, decode_change, decode_progress, encode
from .planner import plan_rollback, revertible
from .references import find_orphan
from .stages import Move, Stage, Status, VersionStage
from .targets import (
    ColumnElement,
    ConstraintElement,
    FactsElement,
    IndexElement,
    PrimaryElement,
    Target,
)
from .validate import validate_check, validate_reference

JOB_KIND = "schema change"

LEASE_STATUS_SECONDS = 1.0
"""After so long of waiting for leases, a job says whom it waits for."""

RETRY_SECONDS = 0.005
"""Between two attempts to publish a version that somebody stood in the way of."""

CHECKPOINT_ROWS = 10_000
"""Rows of a backfill between two saved positions: at most so many are looked at again."""

CANCELED = ("57014", "the schema change was canceled")

NOT_OF_THE_CHANGE = (*RETRYABLE, JobFenced, StoreClosed)
"""Errors of the store or of the claim: the change itself may still succeed."""


@contextmanager
def _until_it_is_over() -> Iterator[None]:
    """Makes every error one that is tried again. A job that ended with its table half changed
    would leave the table to nobody: no statement could change or drop it any more."""
    try:
        yield
    except NOT_OF_THE_CHANGE:
        raise
    except Exception as error:
        raise RetryableJobError(message_of(error)) from error


def _failure_of(error: Exception) -> tuple[str, str]:
    """SQLSTATE and message of the error that a change is undone for."""
    if isinstance(error, SQLError):
        return error.sqlstate, error.message
    for kind, sqlstate in ((KeyTooLarge, "54000"), (EngineDamaged, "XX001")):
        if isinstance(error, kind):
            return sqlstate, message_of(error)
    return "XX000", message_of(error)


async def publish_stage(
    descriptors: DescriptorStore,
    transaction: Transaction,
    table: TableDescriptor,
    targets: Sequence[Target],
    stage: VersionStage,
    job_id: int | None,
) -> tuple[TableDescriptor, ...]:
    """Publishes the version of a stage, and of the tables that it refers to, in a transaction."""
    job = None if stage.last else job_id
    changed = replace(
        apply_stage(table, targets, stage),
        schema_change_job=job,
        drop_time=table.drop_time or (table.modification_time if table.dropped else None),
    )
    published: list[TableDescriptor] = []
    before = {key.referenced_id for key in table.foreign_keys}
    now = {key.referenced_id for key in changed.foreign_keys}
    for other_id in sorted(before ^ now):
        if other_id == table.id:
            changed = _referring(changed, table.id, other_id in now)
            continue
        other = await descriptors.read(transaction, other_id)
        assert isinstance(other, TableDescriptor), (other_id, other)
        told = _referring(other, table.id, other_id in now)
        if told.referenced_by != other.referenced_by and not other.dropped:
            published.append(await _publish(descriptors, transaction, told))
    published.append(await _publish(descriptors, transaction, changed))
    return tuple(published)


def _referring(table: TableDescriptor, referrer: int, refers: bool) -> TableDescriptor:
    others = [id for id in table.referenced_by if id != referrer]
    return replace(table, referenced_by=tuple(sorted([*others, referrer] if refers else others)))


async def _publish(
    descriptors: DescriptorStore, transaction: Transaction, table: TableDescriptor
) -> TableDescriptor:
    version = descriptors.next_version(transaction, table)
    changed = replace(table, version=version)
    await descriptors.publish(transaction, changed)
    return changed


class SchemaChanger:
    """Runs schema changes: the resumer of their jobs."""

    def __init__(
        self,
        store: StoreAccess,
        descriptors: DescriptorStore,
        leases: LeaseManager,
        evaluator: RowEvaluator,
    ) -> None:
        self._store = store
        self._descriptors = descriptors
        self._leases = leases
        self._evaluator = evaluator

    async def resume(self, context: JobContext) -> None:
        with _until_it_is_over():
            run = await self._begin(context)
            await self._forward_or_back(run)
        if run.progress.failure is not None:
            raise SQLError(*run.progress.failure)

    async def on_cancel(self, context: JobContext) -> None:
        """Undoes the change; one that cannot be undone any more is completed, and says so."""
        with _until_it_is_over():
            run = await self._begin(context)
            complete = run.progress.failure is None and not run.revertible
            if run.progress.failure is None and not complete:
                await run.save(failure=CANCELED)
            await self._forward_or_back(run)
        if complete:
            raise SQLError("55000", "the schema change could not be undone, and is complete")

    async def _forward_or_back(self, run: _Run) -> None:
        """To the end, or back to the beginning where anything fails that can fail again."""
        if run.progress.failure is None:
            try:
                await self._forward(run)
                return
            except NOT_OF_THE_CHANGE:
                raise
            except Exception as error:
                await run.reload()
                if not run.revertible:
                    raise
                await run.save(failure=_failure_of(error))
        await self._back(run)

    async def _begin(self, context: JobContext) -> _Run:
        run = _Run(context, decode_change(context.job.payload))
        await run.reload()
        return run

    async def _forward(self, run: _Run) -> None:
        await self._wait_for_one_version(run)
        while run.progress.stage < len(run.stages):
            stage = run.stages[run.progress.stage]
            await self._carry_out(run, stage, stage_done=run.progress.stage + 1)

    async def _back(self, run: _Run) -> None:
        """Undoes what is done. The stages to undo are counted apart from those that were done."""
        stages = run.rollback()
        while run.progress.undone < len(stages):
            stage = stages[run.progress.undone]
            await self._carry_out(run, stage, undone=run.progress.undone + 1)

    async def _carry_out(
        self, run: _Run, stage: Stage, *, stage_done: int | None = None, undone: int | None = None
    ) -> None:
        done = run.progress.stage if stage_done is None else stage_done
        back = run.progress.undone if undone is None else undone
        following = with_fields(
            run.progress, stage=done, undone=back, resume_after=b"", work_done=0, row_count=0
        )
        if isinstance(stage, VersionStage):
            await self._version(run, stage, following)
            return
        for number, move in enumerate(_primary_first(run.targets, stage.moves)):
            if number >= run.progress.work_done:
                await self._work(run, move)
                await run.save(resume_after=b"", work_done=number + 1)
        await run.replace(following)

    # Versions.

    async def _version(
        self, run: _Run, stage: VersionStage, following: SchemaChangeProgress
    ) -> None:
        while True:
            await self._wait_for_one_version(run)
            try:
                async with committed(self._store) as transaction:
                    await transaction.started()
                    published = await self._publish(run, transaction, stage, following)
                break
            except RetryableTransaction as error:
                await run.context.set_status(f"waiting to publish: {error}")
                await asyncio.sleep(RETRY_SECONDS)
        run.published(following)
        await self._wait_for_one_version(run, *(table.id for table in published))

    async def _publish(
        self,
        run: _Run,
        transaction: Transaction,
        stage: VersionStage,
        following: SchemaChangeProgress,
    ) -> tuple[TableDescriptor, ...]:
        table = await self._table(transaction, run.change.table_id)
        job_id = run.context.job.id
        assert table.schema_change_job == job_id, (table, table.schema_change_job, job_id)
        published = await publish_stage(
            self._descriptors, transaction, table, run.targets, stage, job_id
        )
        row = await run.context.progress_row(transaction, encode(following))
        await CatalogChanges.of(transaction).put_bookkeeping(*row)
        return published

    async def _table(self, transaction: Transaction, table_id: int) -> TableDescriptor:
        table = await self._descriptors.read(transaction, table_id)
        assert isinstance(table, TableDescriptor), (table_id, table)
        return table

    async def _wait_for_one_version(self, run: _Run, *table_ids: int) -> None:
        """However long it takes; meanwhile the job says whom it waits for."""
        for table_id in table_ids or (run.change.table_id,):
            while True:
                try:
                    await self._leases.wait_for_one_version(table_id, timeout=LEASE_STATUS_SECONDS)
                except LeaseWaitTimeout as waiting:
                    holders = "; ".join(map(str, waiting.holders))
                    await run.context.set_status(f"waiting for leases: {holders}")
                    continue
                except RetryableTransaction:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                break
        await run.context.set_status(None)

    # Work.

    async def _work(self, run: _Run, move: Move) -> None:
        target = run.targets[move.target]
        after = run.progress.resume_after
        if move.to is Status.REMOVED:  # perhaps the table's descriptor is gone by now
            await remove_data(
                self._store,
                _span_left_behind(run.change.table_id, target, run.before),
                fence=run.context.check_claim,
            )
            return
        table = await self._newest(run.change.table_id)
        match target.element:
            case IndexElement(index=index):
                await self._backfill(run, table, index.id, after)
            case PrimaryElement(index=index):
                await self._backfill(run, table, index.id, after)
            case ConstraintElement(constraint=CheckConstraint()) as element:
                check = element.enforced
                assert isinstance(check, CheckConstraint), element
                await validate_check(
                    self._store,
                    table,
                    check,
                    self._evaluator,
                    after=after,
                    checkpoint=run.checkpoint,
                )
            case ConstraintElement(constraint=ForeignKey() as key):
                await validate_reference(
                    self._store,
                    table,
                    key,
                    find_orphan(self._store, self._descriptors),
                    after=after,
                    checkpoint=run.checkpoint,
                )
            case ColumnElement() | FactsElement():
                raise AssertionError(f"{target.label} has no work to do")

    async def _backfill(
        self, run: _Run, table: TableDescriptor, index_id: int, after: bytes
    ) -> None:
        index = next(index for index in table.maintained_indexes if index.id == index_id)
        source, made = table.primary_span, index.kind is IndexKind.PRIMARY
        if not made and table.new_primary is not None:
            # What fills a column may be drawn: it is drawn once, in the new primary index.
            source = index_span(table.id, table.new_primary.id)
        filled = [
            table.column_by_id(target.element.column.id)
            for target in run.targets
            if made
            and isinstance(target.element, ColumnElement)
            and target.present
            and target.element.filled
        ]
        await backfill_index(
            self._store,
            table,
            index,
            filled,
            self._evaluator,
            source=source,
            after=after,
            fence=run.context.check_claim,
            checkpoint=run.checkpoint,
        )

    async def _newest(self, table_id: int) -> TableDescriptor:
        table = await self._descriptors.read_at(table_id, await self._store.now())
        assert isinstance(table, TableDescriptor), (table_id, table)
        return table


def _primary_first(targets: Sequence[Target], moves: Sequence[Move]) -> list[Move]:
    """Secondary indexes are made from the new primary one, where there is one."""
    return sorted(
        moves, key=lambda move: not isinstance(targets[move.target].element, PrimaryElement)
    )


def _span_left_behind(table_id: int, target: Target, old_primary: int | None) -> Span:
    """The data that nobody reads any more, once the target is where it is to be."""
    match target.element:
        case IndexElement(index=index):
            return index_span(table_id, index.id)
        case PrimaryElement(index=index):
            return index_span(table_id, index.id if old_primary is None else old_primary)
        case FactsElement(dropped=True, keyspace=keyspace):
            return keyspace_span(table_id) if keyspace else table_span(table_id)
    raise AssertionError(f"{target.label} leaves nothing behind")


class _Run:
    """One claim of one schema change: its place, and how that is saved."""

    def __init__(self, context: JobContext, change: SchemaChange) -> None:
        self.context = context
        self.change = change
        self.progress = decode_progress(None, change)
        self.targets = change.targets
        self.stages = change.stages()
        self._unsaved = 0

    @property
    def before(self) -> int | None:
        """The primary index of before, whose data goes once a new one has come; else None."""
        return self.change.old_primary if self.progress.failure is None else None

    @property
    def revertible(self) -> bool:
        return revertible(self.targets, self.stages, self.progress.stage)

    def rollback(self) -> tuple[Stage, ...]:
        done = self.stages[: self.progress.stage]
        return plan_rollback(self.targets, done, locked=self.change.locked)

    async def reload(self) -> None:
        """Reads what is saved: an attempt that failed may have saved more than it knew."""
        self.progress = decode_progress(await self.context.reload_progress(), self.change)

    def published(self, progress: SchemaChangeProgress) -> None:
        """Notes progress that a transaction has saved."""
        self.progress = progress

    async def replace(self, progress: SchemaChangeProgress) -> None:
        await self.context.save_progress(encode(progress))
        self.progress = progress

    async def save(self, **fields: object) -> None:
        await self.replace(with_fields(self.progress, **fields))

    async def checkpoint(self, key: bytes, row_count: int) -> None:
        """Work is done up to `key`, which is `row_count` rows more."""
        self.progress = with_fields(
            self.progress, resume_after=key, row_count=self.progress.row_count + row_count
        )
        self._unsaved += row_count
        if self._unsaved >= CHECKPOINT_ROWS:
            self._unsaved = 0
            await self.replace(self.progress)
