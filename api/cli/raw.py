"""`tailrace raw`: the keys of a raw keyspace, of a server.

Keys and values are bytes. Written and printed, a byte that is no printable character of ASCII is
`\\xNN`, and a backslash is `\\\\`; so what `scan` prints is what `load` reads, a pair a line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, quote_from_bytes

import msgspec
import typer

from ...error import Error
from ..http.bodies import JSON, RawBatch, RawPair, RawScan, RawWritten
from .rest_client import DEFAULT_URL, Refused, ask

PAIRS_PER_REQUEST = 1_000
PAIRS_BYTES_MAX = 1024 * 1024
NOT_FOUND = 404

raw_app = typer.Typer(no_args_is_help=True, add_completion=False, help="Raw keyspaces.")

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|\\)")

Keyspace = Annotated[str, typer.Argument(help="The keyspace, as CREATE KEYSPACE named it.")]
Key = Annotated[str, typer.Argument(help="The key; a byte may be written as \\xNN.")]
Url = Annotated[str, typer.Option(help="The server: http://user:password@host:port")]


class BadLine(Error):
    """A line of a file is no pair."""


@raw_app.callback()
def raw() -> None:
    """Raw keyspaces."""


@raw_app.command()
def get(keyspace: Keyspace, key: Key, url: Url = DEFAULT_URL) -> None:
    """Print the value of a key; status 1 where it has none."""
    try:
        value = ask("GET", url, _path(keyspace, _bytes(key)), None, JSON)
    except Refused as refused:
        if refused.status == NOT_FOUND and "no value" in str(refused):
            raise typer.Exit(1) from None
        raise
    print(_text(value))


@raw_app.command()
def put(
    keyspace: Keyspace,
    key: Key,
    value: Annotated[str, typer.Argument(help="The value; a byte may be written as \\xNN.")],
    ttl: Annotated[str | None, typer.Option(help="How long it lives, as 1h.")] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Put a value; print the timestamp of the write."""
    query = "" if ttl is None else f"?ttl={quote(ttl)}"
    path = _path(keyspace, _bytes(key)) + query
    _print_timestamp(ask("PUT", url, path, _bytes(value), "application/octet-stream"))


@raw_app.command()
def delete(keyspace: Keyspace, key: Key, url: Url = DEFAULT_URL) -> None:
    """Delete a key; print the timestamp of the deletion."""
    _print_timestamp(ask("DELETE", url, _path(keyspace, _bytes(key)), None, JSON))


@raw_app.command()
def scan(
    keyspace: Keyspace,
    start: Annotated[str, typer.Option("--from", help="The first key.")] = "",
    end: Annotated[str | None, typer.Option("--to", help="The first key behind the last.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many pairs at most.")] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Print keys and values in key order, a pair a line, a tab between."""
    following: bytes | None = _bytes(start)
    left = limit
    while following is not None and left != 0:
        path = f"{_path(keyspace)}?from={quote_from_bytes(following, safe='')}"
        if end is not None:
            path += f"&to={quote_from_bytes(_bytes(end), safe='')}"
        if left is not None:
            path += f"&limit={left}"
        page = msgspec.json.decode(ask("GET", url, path, None, JSON), type=RawScan)
        for pair in page.pairs:
            print(f"{_text(pair.key)}\t{_text(pair.value)}")
        left = None if left is None else left - len(page.pairs)
        following = page.next


@raw_app.command()
def load(
    keyspace: Keyspace,
    file: Annotated[Path, typer.Argument(help="Pairs as `scan` prints them; - for the input.")],
    ttl: Annotated[int | None, typer.Option(help="How many seconds they live.")] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Put the pairs of a file, in their order."""
    count = 0
    for pairs in _batches(file):
        body = msgspec.json.encode(RawBatch(pairs, ttl))
        ask("POST", url, f"/v1/keyspaces/{quote(keyspace, safe='')}/batch", body, JSON)
        count += len(pairs)
    print(f"{count} pairs")


def _batches(file: Path) -> Iterator[list[RawPair]]:
    """Raises BadLine, before which every pair was in a batch."""
    pairs: list[RawPair] = []
    size = 0
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            key, tab, value = line.rstrip(b"\r\n").partition(b"\t")
            if not tab:
                if pairs:
                    yield pairs
                raise BadLine(f"line {number} is no pair: write the key, a tab, the value")
            pairs.append(RawPair(_unescaped(key), _unescaped(value)))
            size += len(line)
            if len(pairs) == PAIRS_PER_REQUEST or size >= PAIRS_BYTES_MAX:
                yield pairs
                pairs, size = [], 0
    if pairs:
        yield pairs


def _path(keyspace: str, key: bytes | None = None) -> str:
    path = f"/v1/keyspaces/{quote(keyspace, safe='')}/keys"
    return path if key is None else f"{path}/{quote_from_bytes(key, safe='')}"


def _print_timestamp(answer: bytes) -> None:
    print(msgspec.json.decode(answer, type=RawWritten).timestamp)


def _bytes(text: str) -> bytes:
    return _unescaped(text.encode())


def _unescaped(text: bytes) -> bytes:
    return _ESCAPE.sub(
        lambda found: b"\\" if found[1] == b"\\" else bytes.fromhex(found[1][1:].decode()), text
    )


def _text(value: bytes) -> str:
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"
        for byte in value
    )
