"""COPY FROM: batches of rows into one table, as one transaction.

loading = await session.copy_in(statement)
await loading.write(batch)                   # any number of times
await session.end_batch()                    # or await session.fail(): then nothing remains
"""

from __future__ import annotations

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....catalog.rights.key_errors import told_to
from ....catalog.rights.privileges import Privilege
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import KVError
from ...analyze.binder import places_of
from ...analyze.default_expressions import computed_given
from ...analyze.scalars import Bindings
from ...analyze.views import refuse_view
from ...results.errors import from_kv
from ...runtime.authorization import Actor
from ...runtime.relations import Resolver
from ...runtime.services import Services
from ...runtime.transactions import OpenTransaction
from ...syntax.statement import at
from ...syntax.statements import CopyFrom
from ...syntax.trees import quoted_names
from .foreign_keys import write_in
from .row_rules import RowRules, encode_batch
from .sequences import SequencesOfUser, with_draws_of


class CopyIn:
    """A COPY under way. `columns` are what each batch must have, in this order."""

    def __init__(
        self,
        actor: Actor,
        descriptor: TableDescriptor,
        columns: tuple[Column, ...],
        opened: OpenTransaction,
    ) -> None:
        services, user, database = actor.services, actor.user, actor.database
        self._rights, self._user = services.rights, user
        self.table_name = descriptor.name
        self.columns = columns
        self._rules = RowRules.of(descriptor)
        self._transaction = actor.reader
        self._bindings = Bindings(
            (),
            opened.began,
            generators=services.generators,
            deferral=opened.deferred,
            analytics=services.analytics,
        )
        self._sequences = SequencesOfUser(services, user, database, actor.reader)
        self.row_count = 0

    async def write(self, batch: pa.RecordBatch) -> None:
        """Writes rows. Raises SQLError, and then the COPY is to be abandoned."""
        if not batch.num_rows:
            return
        rules = self._rules
        mutation = await with_draws_of(
            self._sequences, self._bindings, lambda bindings: encode_batch(rules, batch, bindings)
        )
        try:
            mutation.insert_only()
            await write_in(mutation, self._transaction, self._bindings)
        except KVError as error:
            raise from_kv(error) from error
        except SQLError as error:
            raise told_to(error, self._rights.current, self._user) from error
        self.row_count += batch.num_rows


async def begin_copy(
    services: Services, database: str, statement: CopyFrom, opened: OpenTransaction, user: str
) -> CopyIn:
    """A COPY FROM in a transaction. Raises SQLError."""
    transaction = opened.transaction
    await transaction.started()
    at = transaction.read_timestamp
    resolver = Resolver(services, database, transaction, opened.scope, at, transaction)
    with transaction.tracking(False):  # the leases' deadline says what still holds at the commit
        relations = await resolver.relations([statement.table])
    descriptor = relations[statement.table.parts]
    refuse_view(descriptor, statement.table, "copy into")
    actor = Actor(services, user, database, transaction)
    await actor.need_table(descriptor, Privilege.INSERT)
    return CopyIn(actor, descriptor, _columns(statement, descriptor), opened)


def _columns(statement: CopyFrom, descriptor: TableDescriptor) -> tuple[Column, ...]:
    """The columns that a COPY FROM fills. Raises SQLError."""
    if descriptor.id < FIRST_USER_ID:
        raise SQLError("42501", f'permission denied for table "{descriptor.name}"')
    if statement.columns is None:
        return tuple(column for column in descriptor.shown_columns if column.computed is None)
    with at(statement.table.position):
        places = places_of(quoted_names(statement.columns), descriptor)
        columns = [descriptor.visible_columns[place] for place in places]
        for column in columns:
            if column.computed is not None:
                raise computed_given(column.name)
    return tuple(columns)


def copy_refused() -> SQLError:
    """Returns the error for COPY through a door that cannot stream rows."""
    return SQLError(
        "0A000",
        "COPY needs a client of the Postgres protocol",
        hint="Other doors have loads and queries of their own.",
    )
