"""The columnar cache: hot tables as Arrow, brought up by whoever reads them.

What lives here: images (a table's rows at one timestamp, in columns) and the choice of which tables
are held, within a bound of memory. It promises that a
read through it is what a scan by the same transaction would have read: the image is brought to the
transaction's read timestamp by what changed in between, its own writes among it, and that counts as
a read of those keys. It must never know what a query does with the rows.
"""

from .cache import ColumnarCache

__all__ = ["ColumnarCache"]
