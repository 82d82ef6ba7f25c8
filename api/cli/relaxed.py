"""`tailrace relaxed`: the segments of a relaxed log, to a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec
import pyarrow as pa
import typer

from ...error import Error
from ...kvlayer.relaxed.errors import RelaxedLogError
from ...kvlayer.relaxed.segment import Segment, read_segment
from ..http.bodies import ARROW_STREAM, RelaxedReply
from .rest_client import DEFAULT_URL, Refused, ask

PIECE_BYTES = 4 * 1024 * 1024
"""Of a segment that are read at once, and about as many that are sent in a request. A request is
answered when its lines are durable: what was answered is not lost."""

relaxed_app = typer.Typer(no_args_is_help=True, add_completion=False, help="Relaxed logs.")


class RelaxedRefused(Error):
    """A segment cannot be read."""


@relaxed_app.callback()
def relaxed() -> None:
    """Relaxed logs."""


@relaxed_app.command()
def load(
    log: Annotated[str, typer.Argument(help="The relaxed log, as CREATE RELAXED LOG named it.")],
    segments: Annotated[list[Path], typer.Argument(help="Segments, in any order, or again.")],
    url: Annotated[str, typer.Option(help="The server: http://user:password@host:port")] = (
        DEFAULT_URL
    ),
) -> None:
    """Send segments to a relaxed log; what was sent before is not loaded twice."""
    while (refused := _sent(url, log, segments)) is not None:
        if not refused.change_sets:
            raise refused.reason
        # A snapshot that came behind what was refused may have settled it.
    for domain in show(url, log).domains:
        cut = domain.last_cut or "not known"
        print(f"domain {domain.domain}: last cut {cut}, {domain.pending} events pending")
        for gap in domain.gaps:
            print(f"  {gap}")


@dataclass(frozen=True, slots=True)
class _RefusedLoad:
    """Why the first lines that the server refused were, and how many change sets were loaded all
    the same."""

    reason: Refused
    change_sets: int


def _sent(url: str, log: str, segments: Sequence[Path]) -> _RefusedLoad | None:
    """Sends all segments, also what comes behind lines that the server refuses; None where it takes
    all of them. Raises Refused where it does not answer."""
    reason, loaded = None, 0
    lines, change_sets = Counter[Path](), Counter[Path]()
    for path, piece in _pieces(segments):
        try:
            reply = send(url, log, piece)
        except Refused as refused:
            if refused.status is None:
                raise
            reason = reason or refused
            continue
        lines[path] += reply.lines
        change_sets[path] += reply.change_sets
        loaded += reply.change_sets
    for path in segments:
        print(f"{path.name}: {lines[path]} lines, {change_sets[path]} change sets")
    return None if reason is None else _RefusedLoad(reason, loaded)


def _pieces(segments: Sequence[Path]) -> Iterator[tuple[Path, pa.Table]]:
    """The lines of all segments in pieces, always the one that begins with the least id: the server
    holds the events of one process until those that other processes wrote meanwhile have come."""
    ahead: list[tuple[int, int, int, Segment]] = []

    def read_on(number: int, start: int) -> None:
        segment = _read(segments[number], start)
        if segment.lines.num_rows:
            first = segment.lines.column("id")[0].as_py()
            heappush(ahead, (segment.domain, first, number, segment))

    for number in range(len(segments)):
        read_on(number, 0)
    while ahead:
        _, _, number, segment = heappop(ahead)
        for piece in pieces_of(segment.lines):
            yield segments[number], piece
        if segment.torn_at is None:
            read_on(number, segment.end)


def pieces_of(lines: pa.Table) -> Iterator[pa.Table]:
    """Lines as they are sent, about `PIECE_BYTES` in a request."""
    rows = max(1, lines.num_rows * PIECE_BYTES // max(PIECE_BYTES, lines.nbytes))
    for start in range(0, lines.num_rows, rows):
        yield lines.slice(start, rows)


def _read(path: Path, start: int) -> Segment:
    """The next frames of a segment. Raises RelaxedRefused."""
    try:
        segment = read_segment(path, start, PIECE_BYTES)
    except (OSError, RelaxedLogError) as error:
        raise RelaxedRefused(str(error)) from error
    if segment.torn_at is not None:
        typer.echo(
            f"{path}: cut in the midst of what is at byte {segment.torn_at}: the lines before "
            "are sent",
            err=True,
        )
    return segment


def send(url: str, log: str, lines: pa.Table) -> RelaxedReply:
    """Raises Refused."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, lines.schema) as writer:
        writer.write_table(lines, max_chunksize=10_000)
    return _ask("POST", url, log, sink.getvalue().to_pybytes())


def show(url: str, log: str) -> RelaxedReply:
    """Raises Refused."""
    return _ask("GET", url, log, None)


def _ask(method: str, url: str, log: str, body: bytes | None) -> RelaxedReply:
    text = ask(method, url, f"/v1/relaxed/{quote(log, safe='')}", body, ARROW_STREAM)
    return msgspec.json.decode(text, type=RelaxedReply)
