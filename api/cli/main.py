"""The entry point and its commands."""

from __future__ import annotations

import sys

import typer

from ...catalog.errors import SQLError
from ...kvlayer.errors import KVError
from ..demo.flights import DataSetMissing
from ..refusal import NodeRefused
from .bench import bench_app
from .debug import DebugRefused, debug_app
from .demo import demo
from .doctor import doctor
from .serve import serve
from .sql import sql

app = typer.Typer(
    name="tailrace",
    help="A transactional SQL store whose tables have changefeeds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(sql)
app.command()(demo)
app.command()(doctor)
app.add_typer(bench_app, name="bench")
app.add_typer(debug_app, name="debug")


def main() -> None:
    """Runs the command line of the process."""
    try:
        app()
    except (SQLError, KVError, NodeRefused, DataSetMissing, DebugRefused) as error:
        print(f"tailrace: {error}", file=sys.stderr)
        sys.exit(1)
