"""One row for each HTTP route: who may ask it, beyond being somebody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`body` is sent as JSON. `granted` lets a user in who is no admin; `hidden` routes answer who
    lacks the right as if there were nothing. With `streams` the answer has no end."""

    method: str
    path: str
    needs: str
    body: Mapping[str, object] | None = None
    granted: Sequence[str] = ()
    everybody: bool = False
    anonymous: bool = False
    streams: bool = False


SELECT = ("GRANT SELECT ON t TO {user}",)
SQL = {"sql": "SELECT 1"}
SPAN = "/v1/tables/{table}"


def by_statement(method: str, path: str, body: Mapping[str, object] | None = None) -> Route:
    """A route that runs statements of its user, which have rows of their own."""
    needs = "what its statement needs"
    return Route(method=method, path=path, needs=needs, body=body, everybody=True)


def for_admins(method: str, path: str, *, streams: bool = False) -> Route:
    return Route(method=method, path=path, needs="the admin role", streams=streams)


def reading(method: str, path: str, body: Mapping[str, object] | None = None) -> Route:
    return Route(method=method, path=path, needs="SELECT on the table", body=body, granted=SELECT)


def loading(method: str) -> Route:
    return Route(
        method=method,
        path="/v1/relaxed/{log}",
        needs="INSERT, UPDATE, DELETE on each table of the log",
        granted=["GRANT INSERT, UPDATE, DELETE ON crashes TO {user}"],
    )


def keyed(
    method: str, path: str, privileges: str, body: Mapping[str, object] | None = None
) -> Route:
    return Route(
        method=method,
        path=f"/v1/keyspaces/{{keyspace}}/{path}",
        needs=f"{privileges} on the keyspace",
        body=body,
        granted=[f"GRANT {privileges} ON sessions TO {{user}}"],
    )


ROUTES: tuple[Route, ...] = (
    Route(method="GET", path="/healthz", needs="nothing", anonymous=True),
    Route(
        method="POST",
        path="/v1/login",
        needs="a password",
        body={"user": "ada", "password": "x"},
        anonymous=True,
    ),
    by_statement("POST", "/v1/logout"),
    by_statement("POST", "/v1/sql", SQL),
    by_statement("POST", "/v1/transactions", {}),
    by_statement("POST", "/v1/transactions/{transaction}/commit"),
    by_statement("POST", "/v1/transactions/{transaction}/rollback"),
    by_statement("GET", "/v1/jobs"),
    by_statement("GET", "/v1/jobs/{job}"),
    by_statement("POST", "/v1/jobs/{job}/{control}"),
    by_statement("GET", "/v1/changefeeds"),
    by_statement("POST", "/v1/changefeeds"),
    by_statement("GET", "/v1/changefeeds/{job}"),
    by_statement("GET", "/v1/replications"),
    by_statement("POST", "/v1/replications"),
    by_statement("GET", "/v1/replications/{replication}/tasks"),
    by_statement("POST", "/v1/replications/{replication}/{control}"),
    by_statement("GET", "/v1/sessions"),
    by_statement("DELETE", "/v1/sessions/{session}"),
    by_statement("GET", "/v1/queries"),
    by_statement("DELETE", "/v1/queries/{query}"),
    by_statement("GET", "/v1/settings"),
    by_statement("GET", "/v1/settings/{name}"),
    by_statement("PUT", "/v1/settings/{name}"),
    by_statement("DELETE", "/v1/settings/{name}"),
    by_statement("GET", "/v1/tables"),
    by_statement("GET", "/v1/tables/{table}/columns"),
)
ROUTES += (
    reading("GET", SPAN),
    reading("GET", f"{SPAN}/spans"),
    reading("GET", f"{SPAN}/export"),
    reading("POST", f"{SPAN}/positions", {}),
    reading("GET", "/v1/positions/{position}"),
    reading("GET", "/v1/positions/{position}/next?after=1"),
    reading("POST", "/v1/positions/{position}/advance", {"upto": 1}),
    reading("DELETE", "/v1/positions/{position}"),
    Route(
        method="GET",
        path="/v1/changes?table=t",
        needs="SELECT or CHANGEFEED on each table",
        granted=SELECT,
        streams=True,
    ),
    Route(
        method="POST",
        path=f"{SPAN}/rows",
        needs="INSERT on the table; with on_conflict more, as UPSERT",
        granted=["GRANT INSERT ON t TO {user}"],
    ),
    loading("POST"),
    loading("GET"),
    keyed("GET", "keys/{key}", "SELECT"),
    keyed("PUT", "keys/{key}", "INSERT"),
    keyed("DELETE", "keys/{key}", "DELETE"),
    keyed("GET", "keys", "SELECT"),
    keyed("DELETE", "keys", "SELECT, DELETE"),
    keyed("POST", "batch", "INSERT", {"pairs": []}),
    keyed("POST", "ingest/open", "INSERT, DELETE", {"source": "main"}),
    keyed(
        "POST",
        "ingest/lead",
        "INSERT, DELETE",
        {
            "source": "main",
            "group": "main",
            "term": 2,
            "barrier": 1,
            "oracle": "other",
            "secret": "",
        },
    ),
    keyed("GET", "ingest", "INSERT, DELETE"),
    keyed("POST", "ingest", "INSERT, DELETE", {"source": "main", "epoch": 1, "origin": 1}),
    keyed("POST", "cas", "SELECT, INSERT", {"key": "aw==", "expected": None, "value": "dg=="}),
    Route(
        method="POST",
        path="/v1/mirrors/sql",
        needs="SELECT on every table in the mirror",
        body={"mirror": "m.duckdb", "sql": "SELECT * FROM t"},
        granted=SELECT,
    ),
    Route(method="GET", path="/metrics", needs="nothing but a user", everybody=True),
    Route(
        method="GET",
        path="/v1/overview/events",
        needs="VIEWJOB of the system",
        granted=["GRANT SYSTEM VIEWJOB TO {user}"],
        streams=True,
    ),
    for_admins("POST", "/v1/backup"),
    for_admins("GET", "/v1/debug/rangefeed"),
    for_admins("GET", "/v1/debug/keys"),
    for_admins("GET", "/v1/debug/log"),
    for_admins("GET", "/v1/debug/ranges"),
    for_admins("GET", "/v1/compare/events", streams=True),
    for_admins("POST", "/v1/compare/{action}"),
)
