"""The commands, and the options before them."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from .lazy_group import LazyCommand, LazyGroup, read_settings

LazyGroup.known = {
    each.name: each
    for each in (
        LazyCommand("serve", "serve", "serve", "Serve a store, or join one that is served."),
        LazyCommand("sql", "sql", "sql", "A SQL shell, and a runner of scripts."),
        LazyCommand(
            "backup", "backup", "backup", "Copy a store, served or stopped, into a folder."
        ),
        LazyCommand("restore", "backup", "restore", "Make a data folder from a backup."),
        LazyCommand("demo", "demo", "demo", "Replay a day of real flights into a DuckDB mirror."),
        LazyCommand(
            "doctor", "doctor", "doctor", "Say what is installed here, and what is missing."
        ),
        LazyCommand("raw", "raw", "raw_app", "Read and write the keys of a raw keyspace."),
        LazyCommand(
            "replication", "replication", "replication_app", "Create and watch replications."
        ),
        LazyCommand("relaxed", "relaxed", "relaxed_app", "Load the segments of a relaxed log."),
        LazyCommand("bench", "bench", "bench_app", "Measure this machine."),
        LazyCommand("debug", "debug", "debug_app", "Look inside a store."),
    )
}

app = typer.Typer(
    name="tailrace",
    cls=LazyGroup,
    help="A transactional SQL store whose tables have changefeeds.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"tailrace {version('tailrace')}")
        raise typer.Exit


def _configure(context: typer.Context, path: Path | None) -> None:
    """Before the command is looked for: it finds its defaults in the context."""
    if path is not None:
        context.default_map = read_settings(path)


@app.callback()
def tailrace(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version, and end.", is_eager=True, callback=_version
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with defaults of options, one table a command.",
            is_eager=True,
            callback=_configure,
        ),
    ] = None,
) -> None:
    """A transactional SQL store whose tables have changefeeds."""
