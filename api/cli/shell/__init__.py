"""The SQL shell: `tailrace sql`, over the Postgres protocol to a server that runs.

What lives here: a text cut into statements (`splitting`), results written in a chosen form
(`formats`), errors with a caret under what is wrong (`errors`), backslash commands (`commands`),
names completed from the catalog (`completion`), and the loop of prompts or of a script (`shell`).
It promises that standard output holds results and nothing else, and that the exit code
of a script says whether all of it ran. It must never reach into a store: it is a client.
"""

from .client import ConnectFailed
from .formats import Format
from .shell import Shell

__all__ = ["ConnectFailed", "Format", "Shell"]
