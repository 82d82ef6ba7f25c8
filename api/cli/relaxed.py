"""`tailrace relaxed`: the segments of a relaxed log, to a server."""

from __future__ import annotations

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
from .rest_client import DEFAULT_URL, ask

LINES_PER_REQUEST = 50_000
"""A request is answered when its lines are durable: what was answered is not lost."""

relaxed_app = typer.Typer(no_args_is_help=True, help="Relaxed logs.")


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
    for path in segments:
        segment = _read(path)
        if segment.torn_at is not None:
            typer.echo(
                f"{path}: cut in the midst of what is at byte {segment.torn_at}: the lines before "
                "are sent",
                err=True,
            )
        for start in range(0, segment.lines.num_rows, LINES_PER_REQUEST):
            reply = send(url, log, segment.lines.slice(start, LINES_PER_REQUEST))
            print(f"{path.name}: {reply.lines} lines, {reply.change_sets} change sets")
    if segments:
        for domain in show(url, log).domains:
            cut = domain.last_cut or "not known"
            print(f"domain {domain.domain}: last cut {cut}, {domain.pending} events pending")
            for gap in domain.gaps:
                print(f"  {gap}")


def _read(path: Path) -> Segment:
    try:
        return read_segment(path)
    except (OSError, RelaxedLogError) as error:
        raise RelaxedRefused(str(error)) from error


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
