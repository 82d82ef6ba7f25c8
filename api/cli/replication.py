"""`tailrace replication`: replications of raw keyspaces, of a server.

What is listed is one JSON object a line, with the names of the statement's columns.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import msgspec
import typer

from ..http.bodies import JSON, ListReply, ReplicationRequest
from .rest_client import DEFAULT_URL, ask

replication_app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Replications of raw keyspaces."
)

PLACE = "/v1/replications"

Name = Annotated[str, typer.Argument(help="The replication, as CREATE REPLICATION named it.")]
Url = Annotated[str, typer.Option(help="The server: http://user:password@host:port")]


@replication_app.callback()
def replication() -> None:
    """Replications of raw keyspaces."""


@replication_app.command(name="list")
def list_all(url: Url = DEFAULT_URL) -> None:
    """Print the replications: state, checkpoint and lag."""
    _print(ask("GET", url, PLACE, None, JSON))


@replication_app.command()
def create(
    name: Name,
    keyspace: Annotated[str, typer.Argument(help="The keyspace, as CREATE KEYSPACE named it.")],
    into: Annotated[str, typer.Argument(help="tailrace://user:password@host:port/keyspace")],
    option: Annotated[list[str] | None, typer.Option(help="As workers=2; several times.")] = None,
    from_key: Annotated[str | None, typer.Option("--from", help="The first key.")] = None,
    to_key: Annotated[str | None, typer.Option("--to", help="The first key behind.")] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Create a replication; print the jobs of its tasks."""
    options = dict(_pair(text) for text in option or ())
    asked = ReplicationRequest(name, keyspace, into, from_key, to_key, options)
    _print(ask("POST", url, PLACE, msgspec.json.encode(asked), JSON))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is no option: write name=value")
    return name, value


@replication_app.command()
def tasks(name: Name, url: Url = DEFAULT_URL) -> None:
    """Print the tasks: keys, node, epoch, checkpoint, lag and where it arises, rows a second."""
    _print(ask("GET", url, f"{PLACE}/{quote(name, safe='')}/tasks", None, JSON))


@replication_app.command()
def pause(name: Name, url: Url = DEFAULT_URL) -> None:
    """Let it rest where it stands."""
    _control(url, name, "pause")


@replication_app.command()
def resume(name: Name, url: Url = DEFAULT_URL) -> None:
    """Let it go on."""
    _control(url, name, "resume")


@replication_app.command()
def cancel(name: Name, url: Url = DEFAULT_URL) -> None:
    """End it; the replica stays as it is."""
    _control(url, name, "cancel")


@replication_app.command()
def rebalance(name: Name, url: Url = DEFAULT_URL) -> None:
    """Deal its keys to its tasks anew; print the tasks that have others now."""
    _control(url, name, "rebalance")


@replication_app.command()
def verify(name: Name, url: Url = DEFAULT_URL) -> None:
    """Print each key that differs; status 1 where one does."""
    if _control(url, name, "verify"):
        raise typer.Exit(1)


def _control(url: str, name: str, control: str) -> int:
    return _print(ask("POST", url, f"{PLACE}/{quote(name, safe='')}/{control}", b"", JSON))


def _print(answer: bytes) -> int:
    items = msgspec.json.decode(answer, type=ListReply).items
    for item in items:
        print(msgspec.json.encode(item).decode())
    return len(items)
