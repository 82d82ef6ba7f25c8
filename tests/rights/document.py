"""`docs/rights.md`, from the two tables. `python -m tests.rights.document` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .routes import ROUTES
from .statements import ROWS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "rights.md"

HEAD = """\
# Who may do what

Each row is tried by tests (`tests/rights`, which also write this page): as somebody without any
right, as somebody who was granted what the row asks for, as the owner of what it is about, and as
an admin, who may do all of it. An owner has every privilege on what is owned. Who lacks a right is
told 42501, or 403 over HTTP; of the jobs of others, that there are none (42704). The
privileges themselves are in [sql.md](sql.md#users-and-rights), the doors in
[security.md](security.md).

Names end in a number of the test's own: `t1` is a table, `w1` a view, `s1` a sequence, `y1` a type,
`h1` a schema, `d1` a database; `other1` and `role1` are users.

"""


def lines() -> Iterator[str]:
    yield "## Statements\n\n| statement | needs |\n| --- | --- |\n"
    for row in ROWS:
        shown = row.sql.format(n=1, user="ada", job=1, victim=1)
        shown = shown.replace("|", "\\|")
        yield f"| `{shown}` | {row.needs} |\n"
    yield "\n## Routes\n\n| route | needs |\n| --- | --- |\n"
    for route in ROUTES:
        path = route.path.partition("?")[0]
        yield f"| `{route.method} {path}` | {route.needs}{', and no user' * route.anonymous} |\n"


def document() -> str:
    return HEAD + "".join(lines())


if __name__ == "__main__":
    DOCUMENT.write_text(document())
