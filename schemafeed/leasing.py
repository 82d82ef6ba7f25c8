"""The leasing schema feed: answers by a held lease on a locked version, and else delegates.

The proof, from the low-latency changefeed RFC. If one locked version `v` is known to hold over all
of `[frontier, t]`, that is

    modification(v) <= frontier   and   t < end of coverage of v

then every row in that interval is decoded rightly by `v`: `v+2` cannot be published while `v` is
leased, and the neighbours of a locked version are logically equal to it. It is not enough that the
lease covers `t` alone: between the frontier and `t` there may lie an unlock, an ALTER and a
re-lock. So a newly locked version serves only once the delegate has proven everything up to where
it begins, and every event before it was consumed.

An answer by this path costs two comparisons and no waiting. What can end it is coverage, which is
among the comparisons, or a new version, of which the lease manager's notice tells: the feed lets
the lease go at once, whatever its sink does, because a DDL statement waits for it. What the
released lease covered up to the deletion of its row stays provable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..catalog.descriptors.descriptor import TableDescriptor
from ..catalog.leases import DescriptorUnavailable, Lease, LeaseBeyondSession, LeaseManager
from ..kvlayer.clock import ZERO, Timestamp
from ..kvlayer.errors import KVError
from .feed import DelegateSchemaFeed, SchemaAnswer

LEASE_RETRY_SECONDS = 0.1
"""Between two attempts to take a lease that the store refuses, or that no session reaches."""


class _Table:
    """One watched table.

    `proof` is the lease that answers; while it is there, the delegate rests (or runs ahead for when
    the proof ends, if `released`). `candidate` is a lease on a locked version that does not answer
    yet, because the delegate has not proven everything below it.
    """

    __slots__ = (
        "answer",
        "candidate",
        "frontier",
        "proof",
        "proof_since",
        "released",
        "version_seen",
        "wanted",
    )

    def __init__(self, at: Timestamp) -> None:
        self.frontier = at
        self.proof: Lease | None = None
        self.proof_since = ZERO
        self.answer: SchemaAnswer | None = None
        self.candidate: Lease | None = None
        self.released = False
        self.version_seen = 0
        self.wanted = True


class LeasingSchemaFeed:
    """Skips all waiting for tables that are locked. Implements `SchemaFeed` and `LeaseObserver`."""

    def __init__(self, leases: LeaseManager, delegate: DelegateSchemaFeed) -> None:
        self._leases = leases
        self._delegate = delegate
        self._tables: dict[int, _Table] = {}
        self._lease_wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, table_ids: Iterable[int], at: Timestamp) -> None:
        assert self._task is None, "the feed has started"
        ids = list(table_ids)
        await self._delegate.start(ids, at)
        self._tables = {id: _Table(at) for id in ids}
        # Registered before a lease is taken: a version that appears in between is told or is in
        # the snapshot, so that no lease on an older one is held on to.
        for id, version in self._leases.observe(ids, self).items():
            self._tables[id].version_seen = version
        await self._take_leases()
        self._task = asyncio.create_task(self._keep_leases(), name="leasing schema feed")

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        table = self._tables[table_id]
        proof = table.proof
        if proof is not None and table.proof_since <= at_or_before < proof.coverage_end():
            assert table.answer is not None, table_id
            if at_or_before > table.frontier:
                table.frontier = at_or_before
            self._leases.metrics.add("changefeed_schemafeed_fast_answers_total")
            return table.answer
        return self._delegated(table_id, table, at_or_before)

    async def peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        while (answer := self.try_peek(table_id, at_or_before)) is None:
            await self._delegate.changed()
        return answer

    def try_pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        answer = self.try_peek(table_id, at_or_before)
        if answer is not None and answer.events:
            return self._delegate.try_pop(table_id, at_or_before)
        return answer

    async def pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        answer = await self.peek(table_id, at_or_before)
        if answer.events:
            await self._delegate.pop(table_id, at_or_before)
        return answer

    def canonical_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        table = self._tables[table_id]
        proof = table.proof
        if proof is not None and table.proof_since <= at < proof.coverage_end():
            assert proof.descriptor.locked, proof.descriptor
            return proof.descriptor
        return self._delegate.canonical_at(table_id, at)

    def frontier(self, table_id: int) -> Timestamp:
        table = self._tables[table_id]
        if table.proof is not None:
            return table.frontier
        return max(table.frontier, self._delegate.frontier(table_id))

    def fast(self, table_id: int) -> bool:
        """Whether the table is answered for by a lease that is held."""
        table = self._tables[table_id]
        return table.proof is not None and not table.released

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._leases.unobserve(self)
        for table in self._tables.values():
            self._let_go(table)
        await self._delegate.close()

    def on_new_version(self, table_id: int, version: int) -> None:
        """The lease manager's notice, in its own step: release before anything else."""
        table = self._tables[table_id]
        table.version_seen = max(table.version_seen, version)
        held = table.candidate or table.proof
        if held is None or held.descriptor.version < version:
            self._stand_aside(table_id, table)
            assert table.candidate is None, (table_id, version)
            assert table.proof is None or table.released, (table_id, version)

    def on_leases_lost(self) -> None:
        """The node's session ended, and every lease with it."""
        for table_id, table in self._tables.items():
            self._stand_aside(table_id, table)

    def _stand_aside(self, table_id: int, table: _Table) -> None:
        """Holds nothing any more; the delegate goes to work on what comes next."""
        self._let_go(table)
        if table.proof is not None:
            table.released = True
            self._delegate.resume(table_id, table.frontier)
        table.wanted = True
        self._lease_wanted.set()

    def _let_go(self, table: _Table) -> None:
        if table.candidate is not None:
            table.candidate.release()
            table.candidate = None
        if table.proof is not None:
            table.proof.release()

    def _delegated(self, table_id: int, table: _Table, at: Timestamp) -> SchemaAnswer | None:
        """The way on where the lease does not answer: another lease, or the delegate."""
        if table.proof is not None and at >= table.proof_since:
            self._end_proof(table_id, table)
        if table.proof is None and self._promote(table_id, table):
            return self.try_peek(table_id, at)
        answer = self._delegate.try_peek(table_id, at)
        if answer is not None and at > table.frontier:
            table.frontier = at
        return answer

    def _end_proof(self, table_id: int, table: _Table) -> None:
        """Coverage has ended: the delegate goes on from the frontier, with nothing between."""
        assert table.proof is not None, table_id
        assert table.proof_since <= table.frontier, (table_id, table.proof_since, table.frontier)
        if not table.released:
            self._stand_aside(table_id, table)
        self._delegate.resume(table_id, table.frontier)
        table.proof = None
        table.answer = None

    def _promote(self, table_id: int, table: _Table) -> bool:
        """Lets the candidate answer if everything below it is proven and consumed."""
        candidate = table.candidate
        if candidate is None or self._delegate.pending(table_id):
            return False
        since = candidate.descriptor.modification_time
        frontier = self._delegate.frontier(table_id)
        if since > frontier or frontier >= candidate.coverage_end():
            return False
        assert candidate.descriptor.locked, candidate.descriptor
        assert table.proof is None or table.released, table_id
        table.candidate = None
        table.proof = candidate
        table.proof_since = since
        table.released = False
        table.answer = SchemaAnswer((), candidate.descriptor, since)
        table.frontier = max(table.frontier, frontier)
        assert since <= table.frontier, (table_id, since, table.frontier)
        self._delegate.pause(table_id)
        return True

    async def _keep_leases(self) -> None:
        """Takes a lease whenever a notice says that there may be another locked version."""
        while True:
            await self._lease_wanted.wait()
            self._lease_wanted.clear()
            await self._take_leases()

    async def _take_leases(self) -> None:
        for table_id, table in self._tables.items():
            if table.wanted:
                table.wanted = False
                await self._take_lease(table_id, table)

    async def _take_lease(self, table_id: int, table: _Table) -> None:
        if table.candidate is not None or (table.proof is not None and not table.released):
            return  # held, and no newer version is known
        try:
            lease = await self._leases.acquire_freshest(table_id)
        except DescriptorUnavailable:
            return  # dropped: the delegate tells when
        except (KVError, LeaseBeyondSession):
            table.wanted = True
            self._lease_wanted.set()
            await asyncio.sleep(LEASE_RETRY_SECONDS)
            return
        descriptor = lease.descriptor
        if not descriptor.locked or descriptor.version < table.version_seen:
            lease.release()
            return
        assert table.candidate is None, table_id
        assert table.proof is None or table.released, table_id
        table.candidate = lease
        self._promote(table_id, table)
