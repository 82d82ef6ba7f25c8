"""`tailrace debug`: a store's keys, log, ranges and feeds, served or not."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode, urlsplit

import msgspec
import typer

from ...catalog.store.key_names import KeyNames
from ...error import Error
from ...kvlayer.clock import Timestamp, parse_timestamp, seconds_between
from ...kvlayer.span import Span
from ..debug import (
    FolderRefused,
    Line,
    OfflineStore,
    Target,
    TargetError,
    key_lines,
    log_lines,
    range_lines,
)

DEFAULT_URL = "http://127.0.0.1:8080"

debug_app = typer.Typer(no_args_is_help=True, add_completion=False, help="Look inside a store.")

Url = Annotated[str, typer.Option(help="The server of a running store.")]
Folder = Annotated[
    Path | None, typer.Option(help="A data folder that no server holds; read, never written.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Lines of JSON, as the server sends them.")]
Limit = Annotated[int, typer.Option(min=1, help="Lines at most.")]

_decode = msgspec.json.Decoder(dict[str, object]).decode
_encode = msgspec.json.Encoder().encode


class DebugRefused(Error):
    """The server said no, or is not there; the message says which and what to do."""


@debug_app.command()
def rangefeed(
    target: Annotated[str, typer.Argument(help="A table, or keys: 0x74... or 0x74...-0x75...")],
    start: Annotated[
        str | None, typer.Option("--from", help="A timestamp, exclusive; now if none.")
    ] = None,
    previous: Annotated[bool, typer.Option(help="With the values that were replaced.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many lines.")] = None,
    every: Annotated[
        float, typer.Option(min=0.0, help="Of checkpoints in a row, one for so many seconds.")
    ] = 1.0,
    url: Url = DEFAULT_URL,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Print a range feed's events as they come, until interrupted."""
    if folder is not None:
        raise DebugRefused(
            f"nothing is committed to {folder} while no server holds it, so there is no feed to "
            f"follow: start `tailrace serve {folder}` and give its --url, or look at what was "
            f"committed with `tailrace debug keys {target} --folder {folder}`"
        )
    query = {"target": target, "previous": str(previous).lower()}
    if start is not None:
        query["from"] = start
    lines = _thinned(_served_lines(url, "rangefeed", query), every)
    _print(lines if limit is None else islice(lines, limit), as_json)


@debug_app.command()
def keys(
    target: Annotated[str | None, typer.Argument(help="As for rangefeed; all keys if none.")] = (
        None
    ),
    limit: Limit = 1000,
    url: Url = DEFAULT_URL,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Print intents, range tombstones and versions of keys."""
    if folder is None:
        query = {"limit": str(limit)} | ({} if target is None else {"target": target})
        _print(_served_lines(url, "keys", query), as_json)
        return
    store = _offline(folder)
    try:
        names = KeyNames.load(store.reader)
        span = _span(target, names)
        _print(islice(key_lines(store.reader, names, span), limit), as_json)
    finally:
        store.close()


@debug_app.command()
def log(
    start: Annotated[int | None, typer.Option("--from", min=1, help="A log index.")] = None,
    limit: Limit = 1000,
    url: Url = DEFAULT_URL,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Print the operations of the log's entries, from the oldest that is kept."""
    if folder is None:
        query = {"limit": str(limit)} | ({} if start is None else {"from": str(start)})
        _print(_served_lines(url, "log", query), as_json)
        return
    store = _offline(folder)
    try:
        names = KeyNames.load(store.reader)
        entries = (entry for entry in store.entries() if entry[0] >= (start or 0))
        _print(islice(log_lines(entries, names), limit), as_json)
    finally:
        store.close()


@debug_app.command()
def ranges(url: Url = DEFAULT_URL, folder: Folder = None, as_json: AsJson = False) -> None:
    """Print every range with its span."""
    if folder is None:
        _print(_served_lines(url, "ranges", {}), as_json)
        return
    store = _offline(folder)
    try:
        _print(range_lines(store.reader, KeyNames.load(store.reader)), as_json)
    finally:
        store.close()


def _thinned(lines: Iterator[Line], seconds: float) -> Iterator[Line]:
    """Leaves out checkpoints that follow another at once: an idle table has a hundred a second.

    The first one after a value stays, and by their own timestamps one for so many seconds.
    """
    shown: Timestamp | None = None
    for line in lines:
        if line.get("event") != "checkpoint":
            shown = None
            yield line
            continue
        resolved = parse_timestamp(str(line["resolved"]))
        if shown is None or seconds_between(shown, resolved) >= seconds:
            shown = resolved
            yield line


def _offline(folder: Path) -> OfflineStore:
    try:
        return OfflineStore.open(folder)
    except FolderRefused as error:
        raise DebugRefused(str(error)) from error


def _span(target: str | None, names: KeyNames) -> Span:
    try:
        return Target.parse(target, names)
    except TargetError as error:
        raise DebugRefused(str(error)) from error


def _served_lines(url: str, what: str, query: dict[str, str]) -> Iterator[Line]:
    """The lines of a server's reply, each as soon as it is there. Raises DebugRefused."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        raise DebugRefused(f"{url!r} is no address of a server: write {DEFAULT_URL}")
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80)
    try:
        try:
            connection.request("GET", f"/v1/debug/{what}?{urlencode(query)}")
            reply = connection.getresponse()
        except OSError as error:
            raise DebugRefused(
                f"no server answers at {url} ({error}): start `tailrace serve`, or name its "
                "address with --url"
            ) from error
        if reply.status != http.client.OK:
            raise DebugRefused(_reason(reply.read()))
        for text in reply:
            yield _decode(text)
    finally:
        connection.close()


def _reason(problem: bytes) -> str:
    try:
        found = _decode(problem)
    except msgspec.MsgspecError:
        return problem.decode("utf-8", "replace")
    return str(found.get("detail") or found.get("title") or found)


def _print(lines: Iterator[Line], as_json: bool) -> None:
    """Prints each line when it comes, until there is no more or somebody interrupts."""
    try:
        for line in lines:
            print(_encode(line).decode() if as_json else _words(line), flush=True)
    except KeyboardInterrupt:
        return


def _words(line: Line) -> str:
    """`value  key=/orders/orders_pkey/7  timestamp=...`"""
    first, *rest = line.items()
    head = first[1] if first[0] in ("event", "kind") else f"{first[0]}={first[1]}"
    return "  ".join([str(head), *(f"{name}={_value(value)}" for name, value in rest)])


def _value(value: object) -> str:
    return value if isinstance(value, str) else _encode(value).decode()
