"""Raw keyspaces at the doors: REST, the embedded API, and the command line."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
import typer
from typer.testing import CliRunner

import tailrace
from tailrace.api.cli.raw import raw_app
from tailrace.catalog.values.errors import SQLError
from tests.harness.http_door import HttpDoor, problem_of

KEYS = "/v1/keyspaces/ks/keys"


@pytest.fixture
def keyed(door: HttpDoor) -> HttpDoor:
    door.sql("CREATE KEYSPACE ks")
    return door


def b64(value: bytes) -> str:
    return b64encode(value).decode()


@pytest.mark.parametrize("key", [b"k", b"a/b?c#d", b"\xff\x00\xfe", b"", "ключ".encode(), b"%41"])
def test_any_bytes_are_a_key(keyed: HttpDoor, key: bytes) -> None:
    path = f"{KEYS}/{quote_from_bytes(key, safe='')}"
    written = keyed.client.put(path, content=b"\x00\xff value")
    assert written.status_code == 200, written.text
    assert "." in written.json()["timestamp"]
    found = keyed.client.get(path)
    assert (found.status_code, found.content) == (200, b"\x00\xff value")
    assert keyed.client.get(KEYS).json()["pairs"][0]["key"] == b64(key)
    assert keyed.client.delete(path).status_code == 200
    assert problem_of(keyed.client.get(path))["status"] == 404


def test_the_past_is_read_at_its_timestamp(keyed: HttpDoor) -> None:
    first = keyed.client.put(f"{KEYS}/k", content=b"1").json()["timestamp"]
    keyed.client.put(f"{KEYS}/k", content=b"2")
    assert keyed.client.get(f"{KEYS}/k", params={"at": first}).content == b"1"
    page = keyed.client.get(KEYS, params={"at": first}).json()
    assert page["pairs"] == [{"key": b64(b"k"), "value": b64(b"1")}]


def test_batches_are_scanned_in_pages(keyed: HttpDoor) -> None:
    pairs = [{"key": b64(b"%04d" % i), "value": b64(b"v%d" % i)} for i in range(2500)]
    answer = keyed.post("/v1/keyspaces/ks/batch", {"pairs": pairs})
    assert answer.status_code == 200, answer.text
    found, params = [], {"from": "0100", "to": "2400"}
    while True:
        page = keyed.client.get(KEYS, params=params).json()
        found += page["pairs"]
        if "next" not in page:
            break
        params["from"] = bytes.fromhex(_hex(page["next"])).decode()
    assert found == pairs[100:2400]
    assert len(keyed.client.get(KEYS, params={"limit": "3"}).json()["pairs"]) == 3
    deleted = keyed.client.delete(KEYS, params={"from": "0100", "to": "2400"}).json()
    assert deleted["deleted"] == 2300
    assert keyed.client.delete(KEYS, params={"from": "0100", "to": "2400"}).json() == {"deleted": 0}


def _hex(text: str) -> str:
    from base64 import b64decode

    return b64decode(text).hex()


def test_compare_and_swap_over_http(keyed: HttpDoor) -> None:
    def swap(expected: bytes | None, value: bytes | None) -> dict[str, object]:
        body = {
            "key": b64(b"k"),
            "expected": None if expected is None else b64(expected),
            "value": None if value is None else b64(value),
        }
        answer = keyed.post("/v1/keyspaces/ks/cas", body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    assert swap(None, b"1")["swapped"] is True
    assert swap(None, b"2") == {"swapped": False, "previous": b64(b"1"), "timestamp": None}
    assert swap(b"1", None)["swapped"] is True
    assert keyed.client.get(f"{KEYS}/k").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/v1/keyspaces/nope/keys/k", 404, "does not exist"),
        ("GET", "/v1/keyspaces/t/keys/k", 400, "not a keyspace"),
        ("PUT", "/v1/keyspaces/ks/keys/k?ttl=soon", 400, "ttl"),
        ("PUT", "/v1/keyspaces/ks/keys/k?tll=1h", 422, "tll"),
        ("GET", "/v1/keyspaces/ks/keys?limit=x", 422, "limit"),
        ("GET", "/v1/keyspaces/ks/keys/k?at=9", 422, "at"),
        ("GET", "/v1/keyspaces/ks/keys/k?at=3000000000000000000.0", 422, "future"),
        ("DELETE", "/v1/keyspaces/ks/keys/" + "k" * 16_000, 413, "over the limit"),
    ],
)
def test_bad_requests_are_named(
    keyed: HttpDoor, method: str, path: str, status: int, said: str
) -> None:
    keyed.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    problem = problem_of(keyed.client.request(method, path))
    assert problem["status"] == status, problem
    assert said in f"{problem['title']} {problem.get('detail')}"


def test_what_is_put_with_a_ttl_says_so(keyed: HttpDoor) -> None:
    keyed.client.put(f"{KEYS}/k?ttl=1h", content=b"v")
    assert keyed.client.get(f"{KEYS}/k").content == b"v"
    with HttpDoor() as other:
        other.sql("CREATE KEYSPACE ks")
        assert other.client.get(KEYS).json() == {"pairs": []}


def test_embedded_keyspace() -> None:
    with tailrace.open(":memory:") as db:
        db.sql("CREATE KEYSPACE ks")
        keyspace = db.keyspace("ks")
        first = keyspace.put(b"k", b"1")
        assert keyspace.put_many([(b"%04d" % i, b"v") for i in range(2100)], ttl_seconds=60) > first
        assert keyspace.get(b"k") == b"1"
        assert len(list(keyspace.scan())) == 2101
        assert list(keyspace.scan(b"k")) == [(b"k", b"1")]
        assert keyspace.compare_and_swap(b"k", expected=b"1", value=b"2").swapped
        assert keyspace.get(b"k", at=first) == b"1"
        assert keyspace.delete_range(b"", b"k").count == 2100
        keyspace.delete(b"k")
        assert list(keyspace.scan()) == []
        with pytest.raises(SQLError, match="does not exist"):
            db.keyspace("nope").get(b"k")


def cli(door: HttpDoor, *arguments: str, status: int = 0) -> str:
    url = f"http://127.0.0.1:{door.port}"
    found = CliRunner().invoke(raw_app, [*arguments, "--url", url])
    assert found.exit_code == status, found.output
    return found.output


def test_command_line(keyed: HttpDoor, tmp_path: Path) -> None:
    assert "." in cli(keyed, "put", "ks", "a", "1")
    cli(keyed, "put", "ks", r"b\x00", r"tab\x09 and \\", "--ttl", "1h")
    assert cli(keyed, "get", "ks", "a") == "1\n"
    assert cli(keyed, "get", "ks", r"b\x00") == "tab\\x09 and \\\\\n"
    printed = cli(keyed, "scan", "ks")
    assert printed == "a\t1\nb\\x00\ttab\\x09 and \\\\\n"
    assert cli(keyed, "scan", "ks", "--from", "b", "--limit", "5").count("\n") == 1
    cli(keyed, "delete", "ks", "a")
    assert cli(keyed, "get", "ks", "a", status=1) == ""
    file = tmp_path / "pairs"
    file.write_text(printed + "".join(f"k{i:05}\tv{i}\n" for i in range(2500)))
    assert cli(keyed, "load", "ks", str(file)) == "2502 pairs\n"
    scanned = cli(keyed, "scan", "ks")
    assert scanned == file.read_text()
    file.write_text("a\t2\nno pair\n")
    found = CliRunner().invoke(
        raw_app, ["load", "ks", str(file), "--url", f"http://127.0.0.1:{keyed.port}"]
    )
    assert "line 2 is no pair" in str(found.exception)
    assert cli(keyed, "get", "ks", "a") == "2\n"


def test_commands_are_typer_commands() -> None:
    assert isinstance(raw_app, typer.Typer)


def test_a_name_finds_the_keyspace_that_has_it_now() -> None:
    """One that was made again under the name of another is empty, and takes what is put."""
    with tailrace.open(":memory:") as db:
        db.sql("CREATE KEYSPACE ks")
        keyspace = db.keyspace("ks")
        keyspace.put(b"a", b"1")
        assert keyspace.get(b"a") == b"1"
        db.sql("DROP KEYSPACE ks")
        with pytest.raises(SQLError, match="does not exist"):
            keyspace.get(b"a")
        db.sql("CREATE KEYSPACE ks")
        assert keyspace.get(b"a") is None
        keyspace.put(b"a", b"2")
        db.sql("DROP KEYSPACE ks; CREATE KEYSPACE ks WITH (ttl = '1h')")
        assert keyspace.get(b"a") is None
