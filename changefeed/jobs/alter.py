"""Altering a changefeed: its job's row is changed in the statement's transaction.

Whoever runs the feed hears of it when that commits, ends its attempt behind all that it has
emitted, and begins another by what the row then says. So a feed need not be paused to be altered,
and a paused one is altered all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.jobs import JobNotFound, JobRecord, JobState, JobStateRefused
from ...catalog.jobs.job_store import JobStore
from ...catalog.rights.privileges import Privilege
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.txn import Transaction
from ..contract.options import (
    KNOWN_OPTIONS,
    SECRET_OPTIONS,
    ScanChoice,
    check_effective,
    parse_options,
)
from ..encode.headers import check_named_columns
from ..sinks.kind import SinkKind
from ..sinks.kinds import scheme_of
from ..sinks.protocol import FeedIdentity, SinkRefused
from ..sinks.worker import WorkerKind
from ..targets import TargetState
from .alterations import (
    AddTarget,
    Alteration,
    ControlTarget,
    DropTarget,
    SetOptions,
    TargetAction,
    TargetName,
    UnsetOptions,
)
from .create import check_tables, protect
from .description import describe
from .details import ChangefeedDetails, TargetDetails, decode_details, encode_details
from .membership import holder_of, leaves
from .reservations import JOB_KIND, check_free
from .sealed_options import sealed_options
from .services import ChangefeedServices
from .sink_uris import whole_uri

FIXED_OPTIONS = {
    "cursor": "Each table has its own start: ADD begins at the statement's time.",
    "end_time": "Create another changefeed.",
    "exactly_once": "Create another changefeed, with a cursor where this one is resolved.",
    "full_table_name": "Topics and mirrors keep their names: create another changefeed.",
    "gc_protect_expires_after": "Create another changefeed.",
    "headers_json_column_name": "Messages keep their columns: create another changefeed.",
    "initial_scan": "ADD a table WITH initial_scan, or RESCAN one.",
    "initial_scan_only": "ADD a table WITH initial_scan, or RESCAN one.",
    "key_column": "Messages keep their partitions: create another changefeed.",
    "no_initial_scan": "ADD a table WITH no_initial_scan.",
    "paused": "PAUSE JOB and RESUME JOB stop a changefeed and let it go on.",
    "schema": "A mirror's tables stay where they are: create another changefeed.",
    "sink": "Create another changefeed, with a cursor where this one is resolved.",
    "unordered": "Messages keep their partitions: create another changefeed.",
}
"""What ALTER CHANGEFEED cannot change, and what to do instead."""


async def alter_changefeed(
    services: ChangefeedServices,
    transaction: Transaction,
    job_id: int,
    alterations: Sequence[Alteration],
    *,
    at: Timestamp,
) -> str:
    """Carries out the clauses in their order, in `transaction`; returns the feed's description.

    Raises SQLError, and then nothing is changed.
    """
    jobs = JobStore(services.store)
    with transaction.tracking(True):
        job = await _feed_job(jobs, transaction, job_id)
    details = decode_details(job.payload)
    kind = services.kinds.kind_of(details.sink_uri)
    if isinstance(kind, WorkerKind):
        raise SQLError(
            "0A000",
            f"changefeed job {job_id} cannot be altered: its sink follows one table by itself",
            hint="Create another changefeed.",
        )
    altering = _Altering(services, kind, transaction, job_id, details, at)
    for alteration in alterations:
        await altering.carry_out(alteration)
    details = await altering.finish()
    description = describe(details)
    await jobs.put_payload(transaction, job, encode_details(details), description)
    return description


async def _feed_job(jobs: JobStore, transaction: Transaction, job_id: int) -> JobRecord:
    try:
        job = await jobs.read(transaction, job_id)
    except JobNotFound:
        job = await jobs.get(job_id)  # it has ended; raises JobNotFound where there is none
    if job.kind != JOB_KIND:
        raise SQLError("42809", f"job {job_id} is not a changefeed job")
    if job.state.final or job.state is JobState.CANCEL_REQUESTED:
        raise JobStateRefused(job_id, job.state, "be altered")
    return job


class _Altering:
    """One statement's way through the clauses."""

    def __init__(
        self,
        services: ChangefeedServices,
        kind: SinkKind,
        transaction: Transaction,
        job_id: int,
        details: ChangefeedDetails,
        at: Timestamp,
    ) -> None:
        self._services = services
        self._transaction = transaction
        self._job_id = job_id
        self._details = details
        self._at = at
        self._kind = kind
        self._added: list[AddTarget] = []

    async def carry_out(self, alteration: Alteration) -> None:
        """Raises SQLError."""
        if self._details.query is not None and isinstance(alteration, AddTarget | DropTarget):
            raise SQLError(
                "0A000",
                f"changefeed job {self._job_id} is of a CDC query: its table cannot be altered",
                hint="Create another changefeed.",
            )
        match alteration:
            case SetOptions() | UnsetOptions():
                self._change_options(alteration)
            case AddTarget():
                await self._add(alteration)
            case DropTarget(target):
                await self._drop(self._find(target))
            case ControlTarget(action, target):
                await self._control(action, self._find(target))
            case _:
                assert_never(alteration)

    async def finish(self) -> ChangefeedDetails:
        """The details with which the job goes on. Raises SQLError where the clauses together will
        not do."""
        details = self._details
        if not details.targets and details.whole_database is None:
            raise SQLError(
                "22023",
                f"cannot drop all targets of changefeed job {self._job_id}",
                hint=f"CANCEL JOB {self._job_id} ends it.",
            )
        await self._kind.load(details.parsed_options, self._services.offload)
        if self._added:
            await self._check_sink()
        return details

    # Options

    def _change_options(self, alteration: SetOptions | UnsetOptions) -> None:
        options = dict(self._details.options)
        names = list(alteration.options if isinstance(alteration, SetOptions) else alteration.names)
        removable = self._details.refused_options if isinstance(alteration, UnsetOptions) else ()
        for name in names:
            if name in removable:
                continue
            hint = FIXED_OPTIONS.get(name)
            if hint is not None:
                raise SQLError("22023", f"changefeed option {name} cannot be altered", hint=hint)
            if name not in KNOWN_OPTIONS:
                parse_options({name: None})  # raises what CREATE CHANGEFEED says of it
            if isinstance(alteration, SetOptions):
                sink = scheme_of(self._details.sink_uri)
                check_effective([name], self._kind.obeys, sink)
        if isinstance(alteration, SetOptions):
            secret = {n: text for n, text in alteration.options.items() if n in SECRET_OPTIONS}
            parse_options(secret)  # nobody can once it is sealed
            options.update(sealed_options(self._services, alteration.options))
        else:
            options = {name: text for name, text in options.items() if name not in names}
        self._details = msgspec.structs.replace(self._details, options=options)
        self._kind.check_options(self._details.parsed_options)

    # Targets

    def _find(self, named: TargetName) -> TargetDetails:
        for target in self._details.targets:
            if named.table_id == target.table_id:
                return target
        for target in self._details.targets:
            if named.table_id is None and named.name == target.name:
                return target
        raise SQLError(
            "42704",
            f'table "{named.name}" is not watched by changefeed job {self._job_id}',
            hint=f"SHOW CHANGEFEED JOB {self._job_id} lists the tables that are.",
        )

    async def _add(self, added: AddTarget) -> None:
        details, table = self._details, added.table
        if details.target(table.id) is not None:
            raise SQLError(
                "42710",
                f'table "{added.name}" is already watched by changefeed job {self._job_id}',
                hint=f"ALTER CHANGEFEED {self._job_id} RESCAN TABLE {added.name} shows its rows "
                "again.",
            )
        options = details.parsed_options
        if options.initial_scan is ScanChoice.ONLY:
            raise SQLError(
                "55000",
                f"changefeed job {self._job_id} ends with its initial scan: no table can be added",
                hint="Create another changefeed.",
            )
        check_tables([table], [added.name], self._at)
        follows = self._kind.follows(whole_uri(self._services, details))
        scans = follows if added.scans is None else added.scans
        target = TargetDetails(
            table_id=table.id,
            name=added.name,
            start_at=self._at,
            scans=scans,
            fresh=True,
            protection_id=await protect(
                self._services,
                self._transaction,
                [self._services.target(table.id)],
                self._at,
                max_age_seconds=options.gc_protect_expires_after,
            ),
        )
        database = details.whole_database
        if database is not None:
            if not database.holds(table):
                raise SQLError(
                    "22023", f'table "{added.name}" is not in database "{database.name}"'
                )
            database = database.with_table(added.name)
        self._details = msgspec.structs.replace(
            details, targets=(*details.targets, target), whole_database=database
        )
        self._added.append(added)

    async def _drop(self, target: TargetDetails) -> None:
        if target.protection_id:
            await self._services.protections.release(self._transaction, target.protection_id)
        left = tuple(each for each in self._details.targets if each is not target)
        once = (*self._details.once, target.table_id)
        database = self._details.whole_database
        self._details = msgspec.structs.replace(
            self._details,
            targets=left,
            once=tuple(dict.fromkeys(once)),
            whole_database=None if database is None else database.without_table(target.name),
        )
        self._added = [each for each in self._added if each.table.id != target.table_id]

    async def _control(self, action: TargetAction, target: TargetDetails) -> None:
        state = target.state
        allowed = {
            TargetAction.PAUSE: state is TargetState.RUNNING,
            TargetAction.RESUME: state in (TargetState.PAUSED, TargetState.FAILED),
            TargetAction.RESCAN: state in (TargetState.RUNNING, TargetState.FAILED),
        }[action]
        if not allowed:
            raise SQLError(
                "55000",
                f'table "{target.name}" of changefeed job {self._job_id} is {state.value}: it '
                f"cannot {action.value.lower()}",
            )
        if target.refused:
            target = await self._joining(target)
        changed = msgspec.structs.replace(target, state=TargetState.RUNNING, error=None)
        if action is TargetAction.PAUSE:
            changed = msgspec.structs.replace(target, state=TargetState.PAUSED)
        elif action is TargetAction.RESCAN:
            # Where it is being shown again by now, the sink may hold no other time of it than that.
            changed = msgspec.structs.replace(changed, again=True)
        self._details = self._details.with_target(changed)

    async def _joining(self, target: TargetDetails) -> TargetDetails:
        """A table that could not join the feed of its database, protected from now on: it is to be
        one that the sink takes."""
        table = await self._services.descriptors.read(self._transaction, target.table_id)
        if not isinstance(table, TableDescriptor) or table.dropped:
            raise SQLError("42P01", f'table "{target.name}" does not exist any more')
        protection_id = await protect(
            self._services,
            self._transaction,
            [self._services.target(table.id)],
            self._at,
            max_age_seconds=self._details.parsed_options.gc_protect_expires_after,
        )
        self._added.append(AddTarget(table, target.name, scans=True))
        return msgspec.structs.replace(
            target,
            protection_id=protection_id,
            start_at=self._at,
            scans=True,
            fresh=True,
            created_at=ZERO,
        )

    # Together

    async def _check_sink(self) -> None:
        """Whether the sink takes the tables that were added."""
        services, details = self._services, self._details
        for added in self._added:
            await self._check_place(details.target(added.table.id))
        new = [added.table for added in self._added if added.table.id not in details.once]
        check_named_columns(new, details.parsed_options)
        await check_free(services, self._transaction, details, job_id=self._job_id)
        if not self._kind.local or details.node_id == services.node_id:
            try:
                if new:
                    feed = FeedIdentity(store_id=services.store.id, job_id=self._job_id, epoch=0)
                    await self._kind.admit(whole_uri(services, details), new, feed)
            except SinkRefused as refused:
                raise SQLError("55000", str(refused)) from refused
        for added in self._added:
            self._check_owner(added)

    async def _check_place(self, target: TargetDetails | None) -> None:
        """Raises SQLError 55000 where another target of the feed has its place at the sink."""
        assert target is not None, "it was added"
        holder = holder_of(self._services, self._kind, self._details, target)
        if holder is None:
            return
        remedy = f"Create a changefeed of {target.name} alone."
        if await leaves(self._services, holder):
            remedy = (
                "That one was dropped, and leaves when the feed comes by: try again in a moment."
            )
        raise SQLError(
            "55000",
            f"table {holder.name} of changefeed job {self._job_id} has the place of "
            f"{target.name} at the sink",
            hint=remedy,
        )

    def _check_owner(self, added: AddTarget) -> None:
        """A feed runs with its owner's rights: one without them would end at once."""
        rights, owner = self._services.rights.current, self._details.user_name
        if rights.admin(owner) or rights.allow(owner, added.table, Privilege.CHANGEFEED):
            return
        raise SQLError(
            "42501",
            f"the owner {owner} of changefeed job {self._job_id} does not have CHANGEFEED "
            f"privilege on relation {added.table.name}",
            hint=f"GRANT CHANGEFEED ON TABLE {added.table.name} TO {owner}.",
        )
