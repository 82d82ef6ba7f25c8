"""Files of changes in a folder of this node, for batch programs that read folders in order.

Each table's changes are in files whose names sort in the order in which they are to be read, and a
`RESOLVED` mark says that every change at or below its timestamp stands in the files before it. A
file is there whole or not at all. Changes arrive at least once.
"""

from .kind import SCHEMES, FilesKind

__all__ = ["SCHEMES", "FilesKind"]
