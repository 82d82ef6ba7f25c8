"""The command line: `tailrace serve | sql | backup | raw | …`.

`main` is the entry point. A command that fails prints one line that says what was wrong and what to
do, and exits with 1; a wrong command line exits with 2.
"""

from .main import main

__all__ = ["main"]
