"""COPY's formats: bytes to columns of values, and rows to bytes.

What lives here: the text, CSV and binary formats of PostgreSQL, each a reader that is fed pieces of
any size and a writer. It promises that a row that does not fit is an SQLError that names its line
and column. It must never know where rows come from or go to.
"""

from .reading import make_reader
from .writing import RowWriter, make_writer

__all__ = ["RowWriter", "make_reader", "make_writer"]
