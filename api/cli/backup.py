"""`tailrace backup` and `tailrace restore`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer
from rich.console import Console
from rich.progress import wrap_file

from ..backup import (
    BackupList,
    StoredFile,
    received_files,
    restore_backup,
    stopped_store,
    write_backup,
)
from .rest_client import DEFAULT_URL, answered

Backup = Annotated[Path, typer.Argument(help="The folder of the backup.")]


def backup(
    target: Backup,
    url: Annotated[
        str, typer.Option(help="The server: http://user:password@host:port, an admin.")
    ] = DEFAULT_URL,
    folder: Annotated[
        Path | None, typer.Option(help="A data folder that no server holds, instead of a server.")
    ] = None,
) -> None:
    """Copy a store, as it is at one moment, into a new folder; a served one goes on meanwhile."""
    facts = {
        "version": version("tailrace"),
        "taken_at": datetime.now(UTC).isoformat("T", "seconds"),
    }
    if folder is not None:
        with stopped_store(folder) as files:
            written = write_backup(target, files, **facts)
    else:
        written = write_backup(target, _served_files(url), **facts)
    print(f"{target}: {_told(written)}")
    print("The key of the store's secrets is not in it: keep secret.key, apart from the backup.")


def _served_files(url: str) -> Iterator[StoredFile]:
    """The files of a new backup, for which the server is asked with the first of them."""
    with answered("POST", url, "/v1/backup", None, "application/json") as answer:
        console = Console(stderr=True)
        with wrap_file(
            cast(BinaryIO, answer), answer.length or 0, description="Backup",
            console=console, transient=True, disable=not console.is_terminal,
        ) as stream:  # fmt: skip
            yield from received_files(stream)


def restore(
    source: Backup,
    folder: Annotated[Path, typer.Argument(help="The data folder to make.")],
    secret_key_file: Annotated[
        Path | None, typer.Option(help="The key of the store's secrets, to put into the folder.")
    ] = None,
) -> None:
    """Make a data folder from a backup. Damage of the backup is found before there is one."""
    restored = restore_backup(source, folder, secret_key=secret_key_file)
    print(f"{folder}: {_told(restored)}, taken {restored.taken_at}")


def _told(found: BackupList) -> str:
    return f"{len(found.files)} files, {found.size:,} bytes"
