"""Sink URIs of servers: read strictly, shown without secrets."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.sinks.postgres.location import parse_target
from tailrace.changefeed.sinks.uri import parse_server_uri, redacted_uri, secrets_of

SECRET = "kana&ri'\n@:/?#[]"
ENCODED = "kana%26ri%27%0A%40%3A%2F%3F%23%5B%5D"


def test_parts_are_decoded() -> None:
    uri = parse_server_uri(f"KIND://a%40b:{ENCODED}@[::1]:99/x%20y?n=1%262", known=["n"], secret=[])
    assert (uri.scheme, uri.user, uri.password) == ("kind", "a@b", SECRET)
    assert (uri.host, uri.port, uri.path) == ("::1", 99, "/x y")
    assert uri.parameters == {"n": "1&2"}
    assert uri.address == "[::1]:99"


def test_shown_without_password_and_secret_parameters() -> None:
    text = f"kind://app:{ENCODED}@host:1/p?token={ENCODED}&n=2"
    shown = redacted_uri(text, ["token"])
    assert shown == "kind://app:redacted@host:1/p?token=redacted&n=2"
    assert redacted_uri(shown, ["token"]) == shown
    assert secrets_of(text, ["token"]) == {SECRET}


NOT_URIS = [
    "no uri kanari",
    "kind://u:kanari/x@host/db",  # a password that was not encoded, in each way
    "kind://u:1/kanari@host/db",
    "kind://u:1?kanari@host/db",
    "kind://u:1#kanari@host/db",
    "kind://u:kanari\n@host/db",
    "kind://u:kanari\t@host/db",
    "kind://u:kanari@[host/db",
    "kind://u:kanari@[1.2.3]/db",
    "kind://u:kanari@host:port/db",
    "kind://u:kanari@db..example/db",  # what no resolver looks up
    f"kind://u:kanari@{'x' * 64}.example/db",
    "kind://u:kanari@host/db?x",
    "kind://u:kanari@host/db?x=1&x=2",
    "kind://u:%ff%fe@host/db",
    "kind://u:kanari%00@host/db",
]


@pytest.mark.parametrize("text", NOT_URIS)
def test_unreadable_shows_nothing_but_its_scheme(text: str) -> None:
    assert redacted_uri(text) in ("kind://…", "…")
    with pytest.raises(SQLError) as caught:
        parse_server_uri(text, known=["x"], secret=[])
    assert "kanari" not in str(caught.value) + str(caught.value.hint)
    assert caught.value.sqlstate == "22023"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("postgres://u:kanari@host", "the path is the name of one database"),
        ("postgres://u:kanari@host/a/b", "the path is the name of one database"),
        ("postgres://:kanari@host/db", "a user is missing"),
        ("postgres://u:kanari@/db", "a host is missing"),
        ("postgres://u:kanari@%2Frun/db", "the host is one name"),
        ("postgres://u:kanari@a,b/db", "the host is one name"),
        ("postgres://u:kanari@host/db?sslmode=off", "sslmode is one of"),
        ("postgres://u:kanari@host/db?sslkey=/etc/shadow", "unknown parameter 'sslkey'"),
        ("postgres://u:kanari@host/db?schema=_tailrace", "is kept for other things"),
        ("postgres://u:kanari@host/db?schema=", "has no value"),
        ("postgres://u:kanari@host/db?connect_timeout=0", "connect_timeout is 2 to 60"),
        ("postgres://u:kanari@host/db?table=" + "x" * 64, "cuts names off"),
    ],
)
def test_postgres_refuses(text: str, why: str) -> None:
    with pytest.raises(SQLError) as caught:
        parse_target(text)
    assert why in str(caught.value)
    assert "kanari" not in str(caught.value)


def test_postgres_target_hides_its_password() -> None:
    target = parse_target(f"postgresql://app:{ENCODED}@[::1]/db?table=t")
    assert target.password == SECRET
    assert "kana" not in repr(target) + target.shown
    assert target.shown == "PostgreSQL database db at [::1]:5432"
