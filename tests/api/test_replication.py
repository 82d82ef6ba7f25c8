"""A keyspace replicated from one store into another, over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tailrace.api.cli.replication import replication_app
from tailrace.api.node import NodeOptions
from tailrace.kvlayer.clock import Timestamp, parse_timestamp
from tailrace.kvlayer.command import EngineDelete, EnginePut
from tailrace.kvlayer.store import Store
from tests.api.test_keyspace_replicas import rows
from tests.harness.http_door import HttpDoor, problem_of

PATIENCE_SECONDS = 10.0


@pytest.fixture
def main() -> Iterator[HttpDoor]:
    with HttpDoor() as door:
        door.sql("CREATE KEYSPACE ks")
        yield door


@pytest.fixture
def recovery() -> Iterator[HttpDoor]:
    with HttpDoor() as door:
        yield door


def uri(door: HttpDoor) -> str:
    return f"tailrace://root@127.0.0.1:{door.port}/ks"


def until(door: HttpDoor, check: Callable[[], bool]) -> None:
    """Returns once `check` holds. It is asked off the door's loop."""

    async def poll() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await asyncio.to_thread(check):
                await asyncio.sleep(0.01)

    door.run(poll())


def caught_up(main: HttpDoor, recovery: HttpDoor) -> Timestamp:
    """Waits until the recovery has resolved the present of the main, which is returned."""
    now = main.run(main.node.store.now())

    def resolved() -> bool:
        with suppress(KeyError):
            found = rows(recovery, "SHOW KEYSPACES")
            return bool(found and found[0][-1] and parse_timestamp(found[0][-1]) >= now)
        return False

    until(main, resolved)
    return now


def content(door: HttpDoor) -> dict[bytes, bytes]:
    async def read() -> dict[bytes, bytes]:
        async with door.node.keyspaces.opened("ks", needs=0) as raw:  # type: ignore[arg-type]
            return {key: value async for pairs in raw.scan() for key, value in pairs}

    return door.run(read())


def versions(door: HttpDoor) -> list[tuple[bytes, int, bytes | None]]:
    """Every version of the keyspace: key, timestamp and entry."""

    async def read() -> list[tuple[bytes, int, bytes | None]]:
        async with door.node.keyspaces.opened("ks", needs=0) as raw:  # type: ignore[arg-type]
            slices = door.node.store.versions(raw.span, Timestamp(0), door.node.store.clock.last)
            cut = len(raw.span.start)
            return [(key[cut:], at, body) async for part in slices for key, at, body in part]

    return sorted(door.run(read()), key=lambda found: found[:2])


def state(door: HttpDoor) -> dict[str, Any]:
    (row,) = rows(door, "SHOW REPLICATIONS")
    names = ("name", "job", "keyspace", "target", "status", "checkpoint", "lag", "error")
    return dict(zip(names, row, strict=True))


def test_a_replica_has_the_versions_of_its_main(main: HttpDoor, recovery: HttpDoor) -> None:
    main.sql("SELECT raw_put('ks', 'before', 'scanned'), raw_put('ks', 'ending', 'x', '1h')")
    main.sql(
        f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' "
        "WITH (concurrency = 3, batch_size = 7, backoff_max = 1)"
    )
    puts = [f"raw_put('ks', 'k{number % 9}', 'v{number}')" for number in range(60)]
    main.sql(f"SELECT {', '.join(puts)}")
    main.sql("SELECT raw_delete('ks', 'k3')")
    caught_up(main, recovery)
    assert content(recovery) == content(main)
    assert versions(recovery) == versions(main)
    told = state(main)
    assert (told["name"], told["keyspace"]) == ("r", "defaultdb.public.ks")
    assert told["target"] == f"{uri(recovery)}?concurrency=3&batch_size=7&backoff_max=1"
    assert (told["status"], told["error"]) == ("running", None)
    assert (
        "already exists"
        in main.refused(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}'")["title"]
    )


def test_verify_tells_the_keys_that_differ(main: HttpDoor, recovery: HttpDoor) -> None:
    main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}'")
    puts = [f"raw_put('ks', 'k{number:02}', '{number}')" for number in range(30)]
    main.sql(f"SELECT {', '.join(puts)}, raw_put('ks', '\xff00', 'x')")
    assert rows(main, "VERIFY REPLICATION r") == []

    async def damage() -> None:
        store = recovery.node.store
        assert isinstance(store, Store)
        found = [key for key, _ in store.engine.scan(b"\x10r", b"\x10s")]
        value = store.engine.get(found[9])
        assert value is not None
        gone = [EngineDelete(key) for key in found[3:5]]
        other = EnginePut(found[9], value[:-2] + b"?" + value[-1:])
        store._ranges.propose_plain([*gone, other])

    recovery.run(damage())
    assert rows(main, "VERIFY REPLICATION r AT RESOLVED") == [
        ["ks", f"key={b'k03'.hex()}", "missing in the sink"],
        ["ks", f"key={b'k04'.hex()}", "missing in the sink"],
        ["ks", f"key={b'k09'.hex()}", "differs in value"],
    ]


def test_a_paused_replication_goes_on_where_it_stood(main: HttpDoor, recovery: HttpDoor) -> None:
    main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}'")
    main.sql("SELECT raw_put('ks', 'a', '1')")
    caught_up(main, recovery)
    main.sql("PAUSE REPLICATION r")
    until(main, lambda: state(main)["status"] == "paused")
    main.sql("SELECT raw_put('ks', 'b', '2'), raw_delete('ks', 'a'), raw_put('ks', 'a', '3')")
    main.sql("RESUME REPLICATION r")
    caught_up(main, recovery)
    assert versions(recovery) == versions(main)
    main.sql("CANCEL REPLICATION r")
    until(main, lambda: state(main)["status"] == "canceled")
    assert "does not exist" in main.refused("PAUSE REPLICATION r")["title"]
    main.sql("SELECT raw_put('ks', 'c', '4')")
    main.sql(f"CREATE REPLICATION again FOR KEYSPACE ks INTO '{uri(recovery)}'")
    caught_up(main, recovery)
    assert versions(recovery) == versions(main)


def test_a_replica_begins_with_a_backup(tmp_path: Path) -> None:
    """It has the entries' own timestamps, and goes on from the backup's; what was written since
    follows, and nothing that was restored is sent."""
    options = NodeOptions(mirror_roots=(tmp_path,))
    with HttpDoor(node=options) as main, HttpDoor(node=options) as recovery:
        main.sql("CREATE KEYSPACE ks WITH (ttl = '1h')")
        puts = [f"raw_put('ks', 'k{number}', 'old')" for number in range(60)]
        main.sql(f"SELECT {', '.join(puts)}")
        main.sql(
            f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' "
            "WITH (bootstrap = 'backup', backup = 'file:///ks')"
        )
        main.sql("SELECT raw_put('ks', 'k1', 'new'), raw_delete('ks', 'k2')")
        caught_up(main, recovery)
        assert content(recovery) == content(main)
        newest = {key: found for key, *found in versions(main)}
        assert {key: found for key, *found in versions(recovery)} == newest
        assert (tmp_path / "ks" / "BACKUP.json").exists()
        assert recovery.node.store.metrics.get("restore_rows_total") == 60
        assert rows(main, "VERIFY REPLICATION r") == []
        main.sql("CANCEL REPLICATION r")
        until(main, lambda: state(main)["status"] == "canceled")
        main.sql("SELECT raw_put('ks', 'k3', 'later')")
        main.sql(f"CREATE REPLICATION again FOR KEYSPACE ks INTO '{uri(recovery)}'")
        caught_up(main, recovery)
        assert content(recovery) == content(main)


def split(door: HttpDoor, *names: str) -> None:
    keys = ", ".join(f"'{name}'" for name in names)
    assert rows(door, f"ALTER KEYSPACE ks SPLIT AT {keys}") == [[name] for name in names]


def tasks(door: HttpDoor) -> list[dict[str, Any]]:
    columns = ("task", "job", "start", "end", "node", "epoch", "status", "checkpoint", "lag")
    names = (*columns, "rows", "rate", "retries", "store", "capture", "network", "error")
    found = rows(door, "SHOW REPLICATION r TASKS")
    return [dict(zip(names, row, strict=True)) for row in found]


def test_workers_send_almost_as_many_ranges_each(main: HttpDoor, recovery: HttpDoor) -> None:
    split(main, *"bdfh")
    main.sql("SELECT raw_put('ks', 'a1', 'scanned'), raw_put('ks', 'e1', 'x', '1h')")
    created = rows(
        main, f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' WITH (workers = 2)"
    )
    puts = [f"raw_put('ks', '{letter}{number}', 'v')" for letter in "acegik" for number in range(9)]
    main.sql(f"SELECT {', '.join(puts)}, raw_delete('ks', 'g3')")
    caught_up(main, recovery)
    assert versions(recovery) == versions(main)
    found = tasks(main)
    assert [(each["start"], each["end"]) for each in found] == [(None, "d"), ("d", None)]
    assert [[each["job"]] for each in found] == created
    assert {each["node"] for each in found} == {1}
    assert all(each["rows"] > 9 and each["retries"] == 0 for each in found), found
    told = state(main)
    assert (told["status"], told["job"]) == ("running", found[0]["job"])
    assert rows(main, "VERIFY REPLICATION r") == []
    other = main.refused(f"CREATE REPLICATION other FOR KEYSPACE ks INTO '{uri(recovery)}'")
    assert "belongs to changefeed job" in other["title"]
    main.sql("PAUSE REPLICATION r")
    until(main, lambda: {each["status"] for each in tasks(main)} == {"paused"})
    assert state(main)["checkpoint"] == min(each["checkpoint"] for each in tasks(main))
    main.sql("SELECT raw_put('ks', 'a1', 'later'), raw_put('ks', 'k1', 'later')")
    main.sql("RESUME REPLICATION r")
    caught_up(main, recovery)
    assert versions(recovery) == versions(main)


def test_a_tasks_lag_is_told_by_where_it_arises(main: HttpDoor) -> None:
    """The parts add up to it; while the target is away, the network's is what grows."""
    with HttpDoor() as recovery:
        main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' WITH (workers = 1)")
        puts = [f"raw_put('ks', 'k{number}', 'v')" for number in range(50)]
        main.sql(f"SELECT {', '.join(puts)}")
        caught_up(main, recovery)
        until(main, lambda: bool(tasks(main)[0]["rate"]))
        (found,) = tasks(main)
        assert found["rate"] > 0
        assert found["rows"] == 50
        parts = found["store"] + found["capture"] + found["network"]
        assert parts == pytest.approx(found["lag"], abs=0.001)
    main.sql("SELECT raw_put('ks', 'k1', 'later')")
    until(main, lambda: (tasks(main)[0]["network"] or 0.0) > 0.5)
    (found,) = tasks(main)
    assert found["network"] > 10 * found["store"], found
    assert found["retries"] == 0, "the attempt goes on"


def test_verify_waits_for_every_task(main: HttpDoor, recovery: HttpDoor) -> None:
    """Also for one that scans beside another that has caught up; it has no lag to tell of yet."""
    split(main, "b")
    puts = [f"raw_put('ks', 'b{number}', 'v')" for number in range(250)]
    main.sql(f"SELECT {', '.join(puts)}, raw_put('ks', 'a', 'v')")
    main.sql(
        f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' "
        "WITH (workers = 2, batch_size = 50, rate_limit = 100)"
    )
    until(main, lambda: tasks(main)[0]["checkpoint"] is not None and bool(tasks(main)[1]["rows"]))
    scanning = tasks(main)[1]
    assert scanning["checkpoint"] is None, "it has 250 entries to send, 100 of them a second"
    assert [scanning[part] for part in ("store", "capture", "network")] == [None] * 3
    refused = main.refused("VERIFY REPLICATION r AT RESOLVED")
    assert refused["title"] == "the replica has not resolved anything yet"
    assert rows(main, "VERIFY REPLICATION r") == []
    assert tasks(main)[1]["checkpoint"] is not None


def test_there_is_a_task_for_each_range_at_most(main: HttpDoor, recovery: HttpDoor) -> None:
    """And a rebalance makes more of them once there are more ranges."""
    main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' WITH (workers = 3)")
    main.sql("SELECT raw_put('ks', 'a', '1'), raw_put('ks', 'm', '2')")
    caught_up(main, recovery)
    assert [(each["start"], each["end"]) for each in tasks(main)] == [(None, None)]
    split(main, "c", "m", "p", "t")
    changed = rows(main, "REBALANCE REPLICATION r")
    assert [text.partition(" INTO")[0] for _, text in changed] == [
        "CREATE REPLICATION r FOR KEYSPACE defaultdb.public.ks TO 'c'",
        "CREATE REPLICATION r FOR KEYSPACE defaultdb.public.ks FROM 'c' TO 'p'",
        "CREATE REPLICATION r FOR KEYSPACE defaultdb.public.ks FROM 'p'",
    ]
    main.sql("SELECT raw_put('ks', 'a', '3'), raw_put('ks', 'm', '4'), raw_put('ks', 'z', '5')")
    caught_up(main, recovery)
    assert versions(recovery) == versions(main)
    assert [each["job"] for each in tasks(main)] == [row[0] for row in changed]
    assert rows(main, "REBALANCE REPLICATION r") == []
    assert rows(main, "VERIFY REPLICATION r") == []
    assert {each["status"] for each in tasks(main)} == {"running"}
    main.sql("CANCEL REPLICATION r")
    until(main, lambda: state(main)["status"] == "canceled")
    assert "does not exist" in main.refused("SHOW REPLICATION r TASKS")["title"]


def test_command_line_and_routes(main: HttpDoor, recovery: HttpDoor) -> None:
    def cli(*arguments: str, status: int = 0) -> list[dict[str, Any]]:
        at = ["--url", f"http://127.0.0.1:{main.port}"]
        found = CliRunner().invoke(replication_app, [*arguments, *at])
        assert found.exit_code == status, found.output
        return [json.loads(line) for line in found.output.splitlines()]

    split(main, "g", "m")
    options = ["--option", "workers=2", "--from", "b", "--to", "x"]
    created = cli("create", "r", "ks", uri(recovery), *options)
    assert [each["job_id"] for each in cli("tasks", "r")] == [each["job_id"] for each in created]
    assert [(each["start_key"], each["end_key"]) for each in cli("tasks", "r")] == [
        ("b", "g"),
        ("g", "x"),
    ]
    assert [each["replication_name"] for each in cli("list")] == ["r"]
    split(main, "p", "s", "u")
    assert len(cli("rebalance", "r")) == 2
    main.sql("SELECT raw_put('ks', 'c', '1'), raw_put('ks', 'q', '2')")
    assert cli("verify", "r") == []
    for control, status in (("pause", "paused"), ("resume", "running"), ("cancel", "canceled")):
        assert cli(control, "r") == []
        until(main, lambda status=status: cli("list")[0]["status"] == status)  # type: ignore[misc]
    assert problem_of(main.client.get("/v1/replications/r/tasks"))["status"] == 404


def test_rebalanced_keys_go_on_under_load(main: HttpDoor, recovery: HttpDoor) -> None:
    """Tasks hear of it one after the other, and whoever is late sends in vain: nothing fails."""
    split(main, *"bd")
    main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' WITH (workers = 2)")
    for turn, borders in enumerate(("fh", "jl", "np", "rt", "vx")):
        puts = [f"raw_put('ks', '{letter}', '{turn}')" for letter in "acegikmoqsuwy"]
        main.sql(f"SELECT {', '.join(puts)}")
        split(main, *borders)
        assert rows(main, "REBALANCE REPLICATION r")
        main.sql(f"SELECT {', '.join(puts)}")
    caught_up(main, recovery)
    assert versions(recovery) == versions(main)
    assert {each["status"] for each in tasks(main)} == {"running"}, tasks(main)


def test_a_replication_of_some_keys_has_tasks_too(main: HttpDoor, recovery: HttpDoor) -> None:
    split(main, *"bdf")
    main.sql("SELECT raw_put('ks', 'a', '1'), raw_put('ks', 'e', '2'), raw_put('ks', 'z', '3')")
    main.sql(
        f"CREATE REPLICATION r FOR KEYSPACE ks FROM 'c' TO 'x' INTO '{uri(recovery)}' "
        "WITH (workers = 2)"
    )
    caught_up(main, recovery)
    assert content(recovery) == {b"e": b"2"}
    assert [(each["start"], each["end"]) for each in tasks(main)] == [("c", "d"), ("d", "x")]


def test_tasks_begin_with_one_backup(tmp_path: Path) -> None:
    options = NodeOptions(mirror_roots=(tmp_path,))
    with HttpDoor(node=options) as main, HttpDoor(node=options) as recovery:
        main.sql("CREATE KEYSPACE ks")
        split(main, "k3", "k5")
        puts = [f"raw_put('ks', 'k{number}', 'old')" for number in range(9)]
        main.sql(f"SELECT {', '.join(puts)}")
        main.sql(
            f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' "
            "WITH (workers = 3, bootstrap = 'backup', backup = 'file:///ks')"
        )
        main.sql("SELECT raw_put('ks', 'k1', 'new'), raw_delete('ks', 'k8')")
        caught_up(main, recovery)
        assert content(recovery) == content(main)
        assert recovery.node.store.metrics.get("restore_rows_total") == 9
        assert len(tasks(main)) == 3


def test_it_is_said_why_a_target_takes_nothing(main: HttpDoor) -> None:
    main.sql("CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://root@127.0.0.1:1/ks'")
    until(main, lambda: state(main)["error"] is not None)
    told = state(main)
    assert (told["status"], "127.0.0.1:1" in told["error"]) == ("running", True), told


def test_promotion_ends_the_replication_and_new_writes_win(
    main: HttpDoor, recovery: HttpDoor
) -> None:
    main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}'")
    main.sql("SELECT raw_put('ks', 'a', 'main')")
    caught_up(main, recovery)
    ((checkpoint,),) = rows(recovery, "ALTER KEYSPACE ks PROMOTE")
    recovery.sql("SELECT raw_put('ks', 'a', 'recovery')")
    main.sql("SELECT raw_put('ks', 'a', 'late')")
    until(main, lambda: state(main)["status"] == "failed")
    assert "was promoted" in state(main)["error"]
    assert parse_timestamp(checkpoint) > 0
    assert content(recovery) == {b"a": b"recovery"}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE REPLICATION r FOR KEYSPACE ks INTO 'null://'", "keyspace of another store"),
        ("CREATE CHANGEFEED FOR KEYSPACE ks INTO 'tailrace://h/ks'", "cannot write into"),
        ("CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks?tls=off'", "in the clear"),
        (
            "CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' WITH (concurrency = 0)",
            "concurrency is a whole number",
        ),
        (
            "CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' WITH (workers = 99)",
            "workers is a whole number from 1 to 32",
        ),
        (
            "CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://h/ks' "
            "WITH (bootstrap = 'backup')",
            "go together",
        ),
        (
            "CREATE REPLICATION r FOR KEYSPACE ks FROM 'a' INTO 'tailrace://h/ks' "
            "WITH (bootstrap = 'backup', backup = 'file:///x')",
            "whole keyspace",
        ),
        (
            "CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://127.0.0.1:1/ks' "
            "WITH (bootstrap = 'backup', backup = 's3://x/y')",
            "in a folder of this node",
        ),
        ("RESUME REPLICATION nosuch", "does not exist"),
        ("REBALANCE REPLICATION nosuch", "does not exist"),
        ("SHOW REPLICATION nosuch TASKS", "does not exist"),
    ],
)
def test_what_cannot_be_replicated_is_said(main: HttpDoor, statement: str, words: str) -> None:
    problem = problem_of(main.post("/v1/sql", {"sql": statement}))
    assert words in problem["title"], problem
