"""`tailrace serve`: a node behind its doors, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...catalog.rights.users import ROOT, find_user
from ...kvlayer.clock import CAUGHT_UP_US, SystemWallClock
from ...kvlayer.errors import KVError, StoreClosed
from ...kvlayer.process.memory import LIMIT, SERVER_BYTES_MIN, MemoryLimit
from ...kvlayer.process.tuned_process import share_arenas, tuned_process
from ...kvlayer.remote import RemoteStore
from ..descriptors import door_bounds, raise_limit
from ..http.server import HttpOptions, HttpServer, bind, http_options, server_for_lakes, url_of
from ..node import Node, NodeOptions
from ..pgwire import PostgresOptions, serve_postgres
from ..pgwire.authentication import Method
from ..pgwire.options import postgres_options
from ..refusal import NodeRefused
from ..tls import invalid_now
from .joining import OtherProcess, join_target, open_node, oracle_target, rpc_address
from .server_log import LogLevel, log_to, server_log

ROOT_PASSWORD = "TAILRACE_ROOT_PASSWORD"


DataFolder = Annotated[Path, typer.Argument(help="The data folder; made if it is not there.")]
HttpHost = Annotated[str, typer.Option(help="Where HTTP is spoken; other than loopback needs TLS.")]
HttpPort = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
MirrorRoots = Annotated[
    list[Path] | None,
    typer.Option(help="Folder where mirrors may lie; the first is for relative paths."),
]
PostgresHost = Annotated[str, typer.Option(help="Where the Postgres protocol is spoken.")]
PostgresPort = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
PostgresMethod = Annotated[
    Method, typer.Option(help="How passwords are sent; `password` needs TLS.")
]
Certificate = Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")]
PlaintextAllowed = Annotated[
    bool,
    typer.Option(help="Take Postgres clients beyond loopback without TLS: rows are readable."),
]
CertificateKey = Annotated[Path | None, typer.Option(help="The certificate's private key (PEM).")]
Insecure = Annotated[
    bool, typer.Option(help="Ask nobody for a password, at no door; loopback only.")
]
RpcPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Let other nodes join here; 0 takes a free port."),
]
RpcHost = Annotated[str, typer.Option(help="Where nodes join; other than loopback needs TLS.")]
JoinAddress = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Be a node of the store whose RPC port this is."),
]
JoinTokenFile = Annotated[
    Path | None,
    typer.Option(help="The file join.token of the store's data folder, or a copy (mode 600)."),
]
JoinAuthority = Annotated[
    Path | None,
    typer.Option(help="The authority (PEM) of that server's --cert; it is joined by TLS."),
]
OracleAddress = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Take the time from the store whose RPC port this is."),
]
OracleTokenFile = Annotated[
    Path | None,
    typer.Option(help="The file join.token of that store's data folder, or a copy (mode 600)."),
]
OracleAuthority = Annotated[
    Path | None,
    typer.Option(help="The authority (PEM) of that server's --cert; it is asked by TLS."),
]
SecretKeyFile = Annotated[
    Path | None,
    typer.Option(
        help="The key of sinks' secrets (32 bytes in base64, mode 600), where it is not the "
        "file secret.key of the data folder."
    ),
]
Salvage = Annotated[
    bool,
    typer.Option(
        help="Open a store whose files are damaged without compacting them, which would end the "
        "server: to save what is sound."
    ),
]
Niceness = Annotated[
    int,
    typer.Option(
        min=0, max=19, help="Give way to other processes of the machine, as `nice -n` does."
    ),
]
LeastLevel = Annotated[LogLevel, typer.Option(help="`info` has each HTTP request, too.")]
LogFile = Annotated[
    Path | None, typer.Option(help="Where the log is appended; without it standard error.")
]


def serve(
    folder: DataFolder,
    host: HttpHost = "127.0.0.1",
    port: HttpPort = 8080,
    mirror_root: MirrorRoots = None,
    pg_host: PostgresHost = "127.0.0.1",
    pg_port: PostgresPort = 26257,
    pg_auth: PostgresMethod = Method.SCRAM,
    cert: Certificate = None,
    pg_plaintext: PlaintextAllowed = False,
    key: CertificateKey = None,
    insecure: Insecure = False,
    rpc_port: RpcPort = None,
    rpc_host: RpcHost = "127.0.0.1",
    join: JoinAddress = None,
    join_token: JoinTokenFile = None,
    join_ca: JoinAuthority = None,
    oracle: OracleAddress = None,
    oracle_token: OracleTokenFile = None,
    oracle_ca: OracleAuthority = None,
    secret_key_file: SecretKeyFile = None,
    salvage: Salvage = False,
    nice: Niceness = 0,
    log_level: LeastLevel = LogLevel.WARNING,
    log_file: LogFile = None,
) -> None:
    """Serve a store, or join one that is served, over HTTP and the Postgres protocol.

    TAILRACE_ROOT_PASSWORD gives root a password where it has none, so that it can log in.
    """
    log_to(log_file, log_level)
    check_memory(LIMIT)
    share_arenas()
    if nice:
        os.nice(nice)
    bounds = door_bounds(raise_limit())
    web = replace(http_options(host, insecure=insecure, cert=cert, key=key), bounds=bounds.http)
    postgres = postgres_options(
        pg_host, pg_auth, insecure=insecure, cert=cert, key=key, plaintext=pg_plaintext
    )
    rpc = rpc_address(rpc_host, rpc_port, cert=cert, key=key)
    joined = OtherProcess(
        option="--join", address=join, token=join_token, authority=join_ca, insecure=insecure
    )
    timed = OtherProcess(
        option="--oracle",
        address=oracle,
        token=oracle_token,
        authority=oracle_ca,
        insecure=insecure,
    )
    listener = bind(host, port)
    url = url_of(host, listener, web.scheme)
    options = NodeOptions(
        mirror_roots=tuple(mirror_root or ()),
        server=server_for_lakes(url, web),
        secret_key_file=secret_key_file,
        oracle=oracle_target(timed, join),
        salvage=salvage,
    )
    target = join_target(joined, rpc_port, salvage=salvage)
    opening = partial(open_node, folder, options, rpc, target)
    serving = _serve(
        opening, url, web, listener, (pg_host, pg_port), replace(postgres, bounds=bounds.postgres)
    )
    if failure := asyncio.run(serving):
        raise typer.Exit(code=1) from failure


def check_memory(limit: MemoryLimit) -> None:
    """Logs the memory that the server may use. Raises NodeRefused where it is too little."""
    if limit.byte_count < SERVER_BYTES_MIN:
        raise NodeRefused(
            f"a server needs {SERVER_BYTES_MIN >> 20} MiB of memory, and this one may use {limit}: "
            "raise the limit"
        )
    server_log.info("may use %s", limit)


async def _set_root_password(node: Node, method: Method) -> None:
    """Sets root's password where it has none yet: one that was set since is not undone by a
    restart."""
    root = await find_user(node.store.snapshot(await node.store.now()), ROOT)
    if root is None or root.verifier is not None:
        return
    password = os.environ.get(ROOT_PASSWORD)
    if not password:
        if method is not Method.TRUST:
            print(
                f"tailrace: root has no password, and so cannot log in: start with {ROOT_PASSWORD} "
                "set to give it one, or with --insecure on loopback",
                flush=True,
            )
        return
    session = node.session()
    try:
        quoted = password.replace("'", "''")
        await session.execute(f"ALTER USER root PASSWORD '{quoted}'")
    finally:
        await session.close()


def start_warnings(node: Node, cert: Path | None) -> Iterator[str]:
    """The warnings of a server's start: an invalid certificate, a store ahead of the clock, a store
    that is not well."""
    now = datetime.fromtimestamp(SystemWallClock().unix_us() / 1e6, UTC)
    if cert is not None and (invalid := invalid_now(cert, now)):
        yield invalid
    ahead_us = node.served.clock.ahead_us if node.served is not None else 0
    if ahead_us > CAUGHT_UP_US:
        yield (
            f"the store is {ahead_us // 1_000_000} seconds ahead of the machine's clock, and goes "
            "on from there: if the machine's clock is wrong, set it and restart the server"
        )
    if node.degraded is not None:
        yield node.degraded[1]


def _tell_room(full: OSError | None) -> None:
    if full is None:
        server_log.warning("the disk has room for the log again: writes go on")
    else:
        server_log.error(
            "the disk has no room for the log's next segment: what does not fit into the last one "
            "is refused until there is room: %s",
            full,
        )


def _tell_connection(change: KVError | None, fail: Callable[[KVError], None]) -> None:
    if change is None:
        server_log.warning("the store's server answers again")
    elif isinstance(change, StoreClosed):
        fail(change)
    else:
        server_log.warning("%s: what needs it waits, or fails with SQLSTATE 08006", change)


async def _serve(
    opening: Callable[[], Awaitable[Node]],
    url: str,
    web: HttpOptions,
    listener: socket.socket,
    postgres_address: tuple[str, int],
    postgres: PostgresOptions,
) -> BaseException | None:
    """Serves until it is told to stop, or until the store can write no more, or turns this node
    away: for which reason is returned. Whoever started the process may start it again: what was
    acknowledged is on disk."""
    failures: list[BaseException] = []
    with contextlib.closing(listener), contextlib.closing(bind(*postgres_address)) as pg:
        node = await opening()
        server = HttpServer(node, listener, web)
        loop = asyncio.get_running_loop()

        def fail(error: BaseException) -> None:
            server_log.error("the store has failed, and the server ends: %s", error)
            failures.append(error)
            server.stop()

        if node.served is not None:
            node.served.on_failure(fail)
            node.served.log.on_room(_tell_room)
        if isinstance(node.store, RemoteStore):
            node.store.on_connection(partial(_tell_connection, fail=fail))
        for stop in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(stop, server.stop)
        try:
            await _set_root_password(node, postgres.method)
            for warning in start_warnings(node, web.cert):
                server_log.warning("%s", warning)
            if node.notice:
                print(f"tailrace: {node.notice}", flush=True)
            pg_shown = f"{postgres_address[0]}:{pg.getsockname()[1]}"
            print(f"tailrace: postgres at {pg_shown} ({postgres.method.value})", flush=True)
            for door in (listener, pg):  # so that who connects upon the next line is not refused
                door.listen()
            print(f"tailrace: ready on {url}", flush=True)
            server_log.info("serves %s at %s, and Postgres at %s", node.store.id, url, pg_shown)
            async with serve_postgres(node, pg, postgres):
                with tuned_process(), node.loop_steps.watched(loop):
                    await server.run()
        finally:
            await server.close()
            await node.close()
            server_log.info("has closed %s", node.store.id)
    return failures[0] if failures else None
