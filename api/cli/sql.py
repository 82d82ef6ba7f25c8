"""`tailrace sql`: a SQL shell, and a runner of scripts, over the Postgres protocol."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_URL = "postgresql://root@127.0.0.1:26257/defaultdb"
URL_VARIABLE = "TAILRACE_URL"

FAILED = 1
"""A statement failed: those before it have run."""
NOT_CONNECTED = 2


def sql(
    url: Annotated[
        str | None, typer.Argument(help=f"Where the server is; {URL_VARIABLE}, or {DEFAULT_URL}.")
    ] = None,
    execute: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="Run this, and end.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="table, records, csv, tsv, json or ndjson; tsv if this is no terminal."),
    ] = None,
) -> None:
    """Statements to a server: from a terminal, from -e, or from standard input.

    Ends with 1 where a statement failed, and with 2 where there is no connection.
    """
    from .shell import ConnectFailed, Format, Shell  # psycopg is for this command alone

    terminal = sys.stdin.isatty() and not execute
    chosen = format or ("table" if sys.stdout.isatty() else "tsv")
    if chosen not in {known.value for known in Format}:
        raise typer.BadParameter(f"{chosen!r}: write one of {[f.value for f in Format]}")
    where = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    try:
        shell = Shell.connect(where, Format(chosen), sys.stdout, sys.stderr)
    except ConnectFailed as error:
        print(f"tailrace: {error}", file=sys.stderr)
        raise typer.Exit(NOT_CONNECTED) from None
    try:
        if terminal:
            shell.prompts(_history())
            return
        texts = execute or [sys.stdin.read()]
        if not all(shell.run_script(text) for text in texts):
            raise typer.Exit(FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(FAILED) from None
    finally:
        shell.close()


def _history() -> Path | None:
    """The file with the lines of earlier shells; None where there can be no such file."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = base / "tailrace"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / "sql_history"
        path.touch(mode=0o600)
    except OSError:
        return None
    return path
