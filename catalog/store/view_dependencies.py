"""The views that read a table: rows of `system.view_dependency`, by the table that is read.

Whoever changes a table reads a few rows there, and no descriptor of a view that reads another. They
are written in the transaction that publishes the view.
"""

from __future__ import annotations

from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ...kvlayer.txn import Transaction
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.system_tables import VIEW_DEPENDENCY
from ..rows.row_codec import codec_for
from .descriptor_store import DescriptorStore

_codec = codec_for(VIEW_DEPENDENCY)


async def publish_view(
    descriptors: DescriptorStore,
    transaction: Transaction,
    before: TableDescriptor | None,
    after: TableDescriptor,
) -> None:
    """Publishes a view's first or next version, or that it is dropped, and what it reads."""
    await descriptors.publish(transaction, after)
    old = set() if before is None else _reads(before)
    new = set() if after.dropped else _reads(after)
    if old - new:
        await transaction.delete([_codec.encode_key(row) for row in sorted(old - new)])
    if new - old:
        rows = [_codec.encode_row(row) for row in sorted(new - old)]
        await transaction.put([key for key, _ in rows], [body for _, body in rows])


async def views_of(
    descriptors: DescriptorStore, transaction: Transaction, table_id: int
) -> list[TableDescriptor]:
    """The views that read a table or view themselves, by their ids."""
    prefix = VIEW_DEPENDENCY.primary_span.start + encode_int(table_id)
    found: list[TableDescriptor] = []
    for key, body in await transaction.scan(Span.prefix(prefix)):
        view_id = _codec.decode_row(key, body)[1]
        assert isinstance(view_id, int), view_id
        view = await descriptors.read(transaction, view_id)
        assert isinstance(view, TableDescriptor) and not view.dropped, (table_id, view)
        found.append(view)
    return found


def _reads(view: TableDescriptor) -> set[tuple[int, int]]:
    assert view.view is not None, view
    return {(dependency.table_id, view.id) for dependency in view.view.reads}
