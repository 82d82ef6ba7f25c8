"""GET /v1/tables/{table}, …/spans and …/export, against an exact model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span
from tests.harness.exports import (
    VersionModel,
    ask_export,
    export,
    now,
    refused_export,
    spans_of,
)
from tests.harness.http_door import HttpDoor, problem_of

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)"


@pytest.fixture
def model(door: HttpDoor) -> VersionModel:
    door.sql(TABLE)
    return VersionModel(door, now(door))


def collect(door: HttpDoor, threshold: int) -> None:
    """Garbage collection of the table up to a threshold."""
    assert door.node.served is not None
    [span] = spans_of(door, cut=False)["spans"]
    start, end = (bytes.fromhex(part) for part in span.split("-"))
    door.run(door.node.served.collect_garbage(Span(start, end), Timestamp(threshold)))


def test_snapshots_equal_the_model(door: HttpDoor, model: VersionModel) -> None:
    stamps = model.run(Random(1), 40)
    for at in [*stamps[::7], stamps[-1], stamps[3] - 1]:
        assert export(door, as_of=at).rows == model.at(at)


def test_versions_equal_the_model(door: HttpDoor, model: VersionModel) -> None:
    stamps = model.run(Random(2), 40)
    random = Random(3)
    for _ in range(12):
        after, upto = sorted(random.choices(stamps, k=2))
        assert export(door, after=after, upto=upto).rows == model.between(after, upto)
    assert export(door, after=model.born, upto=stamps[-1]).rows == model.between(
        model.born, stamps[-1]
    )


def test_range_deletions_are_versions_of_their_keys(door: HttpDoor, model: VersionModel) -> None:
    first = model.commit(dict.fromkeys(range(20), "x"))
    result = door.sql("BEGIN; DELETE FROM t; INSERT INTO t VALUES (3, 'again'); COMMIT")[-1]
    found = export(door, after=first, upto=now(door)).rows
    assert len(found) == 20, result
    assert {row["k"]: row["v"] for row in found if row["_op"] == "upsert"} == {3: "again"}
    assert {row["k"] for row in found if row["_op"] == "delete"} == set(range(20)) - {3}


@pytest.mark.parametrize("kind", ["snapshot", "versions"])
def test_marks_resume_without_loss_or_repetition(
    door: HttpDoor, model: VersionModel, kind: str
) -> None:
    model.commit(dict.fromkeys(range(9000, 9010), "bulk"))
    door.sql("INSERT INTO t SELECT i, 'many' FROM generate_series(1, 5500) AS g(i)")
    door.sql("DELETE FROM t WHERE k <= 500")
    end = now(door)
    query: dict[str, Any] = (
        {"as_of": end} if kind == "snapshot" else {"after": model.born, "upto": end}
    )
    whole = export(door, **query)
    assert len(whole.batches) > 1
    seen = 0
    for batch, mark in whole.batches:
        seen += batch.num_rows
        assert export(door, mark=mark, **query).rows == whole.rows[seen:]


def test_resumed_versions_of_one_transaction_are_counted(
    door: HttpDoor, model: VersionModel
) -> None:
    door.sql("INSERT INTO t SELECT i, 'old' FROM generate_series(1, 2500) AS g(i)")
    start = now(door)
    door.sql(
        "BEGIN; DELETE FROM t; INSERT INTO t SELECT i, 'new' FROM generate_series(1, 2500, 2)"
        " AS g(i); COMMIT"
    )
    query: dict[str, Any] = {"after": start, "upto": now(door)}
    whole = export(door, **query)
    assert len(whole.rows) == 2500
    seen = 0
    for batch, mark in whole.batches:
        seen += batch.num_rows
        assert export(door, mark=mark, **query).rows == whole.rows[seen:]


def test_spans_partition_the_table(door: HttpDoor, model: VersionModel) -> None:
    model.run(Random(4), 30)
    door.sql("ALTER TABLE t SPLIT AT VALUES (10), (20), (30)")
    reply = spans_of(door)
    assert len(reply["spans"]) == 4
    parts = [export(door, as_of=reply["as_of"], span=span).rows for span in reply["spans"]]
    assert [row for part in parts for row in part] == model.at(reply["as_of"])
    changed = [
        export(door, after=model.born, upto=reply["as_of"], span=s).rows for s in reply["spans"]
    ]
    rows = sorted((r["_commit_timestamp"], r["k"]) for part in changed for r in part)
    assert rows == [(at, key) for at, key, _ in model.versions]


def test_columns_are_chosen_and_ordered(door: HttpDoor, model: VersionModel) -> None:
    at = model.commit({1: "a", 2: "b"})
    assert export(door, columns=["v"], as_of=at).rows == [{"v": "a"}, {"v": "b"}]
    assert export(door, columns=["v", "k"]).schema.names == ["v", "k"]
    found = export(door, after=model.born, upto=at, columns=["v"])
    assert found.schema.names == ["v", "_op", "_commit_timestamp"]


def test_filters_leave_what_a_model_leaves(door: HttpDoor, model: VersionModel) -> None:
    at = model.commit({key: None if key < 0 else f"v{key % 3}" for key in range(30)})
    rows = model.at(at)

    def filtered(*conditions: list[object]) -> list[dict[str, object]]:
        return export(door, as_of=at, where=list(conditions), columns=["k", "v"]).rows

    assert filtered(["k", "<", 7]) == [row for row in rows if row["k"] < 7]
    assert filtered(["k", ">=", 5], ["v", "=", "v1"]) == [
        row for row in rows if row["k"] >= 5 and row["v"] == "v1"
    ]
    assert filtered(["v", "is null", None]) == []
    assert filtered(["v", "is not null", None], ["k", "=", 3]) == [rows[3]]


def test_filters_may_look_at_columns_that_are_not_asked_for(
    door: HttpDoor, model: VersionModel
) -> None:
    at = model.commit({1: "a", 2: "b"})
    where = [["v", "=", "b"]]
    assert export(door, as_of=at, columns=["k"], where=where).rows == [{"k": 2}]
    [row] = export(door, after=model.born, upto=at, columns=["k"], where=where).rows
    assert (row["k"], row["_op"]) == (2, "upsert")


def test_interval_that_was_told_does_not_change(door: HttpDoor, model: VersionModel) -> None:
    """An export waits for a transaction that may yet commit in its interval."""
    start = model.commit({1: "a"})
    session = door.node.session()
    door.run(session.execute("BEGIN; UPSERT INTO t VALUES (2, 'b')"))
    upto = now(door)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(export, door, after=start, upto=upto)
        door.run(session.execute("COMMIT"))
        told = asked.result().rows
    door.run(session.close())
    assert [row["k"] for row in told] in ([], [2])
    assert export(door, after=start, upto=upto).rows == told


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"after": 5, "upto": 3}, "inverted"),
        ({"as_of": 2**62}, "in the future"),
        ({"after": 3, "upto": 2**62}, "in the future"),
        ({"after": 3}, "both from and to"),
        ({"as_of": 3, "after": 1, "upto": 2}, "both from and to"),
        ({"span": "00-ff"}, "span: not within"),
        ({"span": "zz-ff"}, "span: not hexadecimal"),
        ({"mark": "0"}, "mark: not hexadecimal"),
        ({"columns": "k"}, "columns:"),
        ({"columns": []}, "name one at least"),
        ({"columns": ["k", "k"]}, "each once"),
        ({"where": [["k", "~", 1]]}, "where:"),
        ({"where": [["k", "=", "x"]]}, "where:"),
        ({"as_of": 0}, "as_of"),
        ({"as_of": "yesterday"}, "as_of"),
    ],
)
def test_bad_requests_are_named(
    door: HttpDoor, model: VersionModel, query: dict[str, Any], says: str
) -> None:
    problem = refused_export(door, **query)
    assert problem["status"] == 422, problem
    assert says in problem["detail"], problem


def test_foreign_marks_are_refused(door: HttpDoor, model: VersionModel) -> None:
    at = model.commit({1: "a"})
    problem = refused_export(door, after=model.born, upto=at, mark="00ff")
    assert (problem["status"], "no mark" in problem["detail"]) == (422, True)


def test_unknown_columns_have_their_sqlstate(door: HttpDoor, model: VersionModel) -> None:
    assert refused_export(door, columns=["w"])["sqlstate"] == "42703"
    assert refused_export(door, where=[["w", "=", 1]])["sqlstate"] == "42703"


def test_collected_history_is_refused(door: HttpDoor, model: VersionModel) -> None:
    stamps = model.run(Random(6), 20)
    collect(door, stamps[10])
    problem = refused_export(door, as_of=stamps[5])
    assert (problem["status"], problem["sqlstate"]) == (400, "22023")
    assert "threshold" in problem["title"]
    assert refused_export(door, after=stamps[5], upto=stamps[15])["sqlstate"] == "22023"
    assert export(door, after=stamps[10], upto=stamps[15]).rows == model.between(
        stamps[10], stamps[15]
    )


def test_slow_reader_costs_little_and_learns_of_collection(
    door: HttpDoor, model: VersionModel
) -> None:
    """A reader that stops reading holds the scan where it is; when what it reads is collected
    meanwhile, the stream has no end marker."""
    door.sql("INSERT INTO t SELECT i, repeat('x', 2000) FROM generate_series(1, 20000) AS g(i)")
    at = now(door)
    with door.client.stream("GET", "/v1/tables/t/export", params={"as_of": at}) as answer:
        pieces = answer.iter_raw()
        received = len(next(pieces))
        collect(door, at + 1)
        with pytest.raises(Exception, match=r"incomplete|closed|disconnected"):
            for piece in pieces:
                received += len(piece)
    assert received < 40_000_000


def test_altered_interval_is_refused(door: HttpDoor, model: VersionModel) -> None:
    start = model.commit({1: "a"})
    door.sql("ALTER TABLE t ADD COLUMN w INT8")
    problem = refused_export(door, after=start, upto=now(door))
    assert problem["status"] == 409
    assert '"t" was altered at' in problem["detail"]
    later = now(door)
    door.sql("UPSERT INTO t VALUES (2, 'b', 7)")
    [row] = export(door, after=later, upto=now(door)).rows
    assert row["w"] == 7


def test_changes_that_no_reader_sees_do_not_matter(door: HttpDoor, model: VersionModel) -> None:
    start = model.commit({1: "a"})
    door.sql("ALTER TABLE t SET (gc.ttlseconds = 1000)")
    model.commit({2: "b"})
    upto = now(door)
    assert export(door, after=start, upto=upto).rows == model.between(start, upto)


def test_dropped_tables_are_gone_from_then_on(door: HttpDoor, model: VersionModel) -> None:
    at = model.commit({1: "a"})
    table_id = spans_of(door)["table_id"]
    door.sql("CREATE TABLE other (k INT8 PRIMARY KEY)")
    door.sql("DROP TABLE t")
    assert refused_export(door)["sqlstate"] == "42P01"
    assert refused_export(door, str(table_id))["status"] == 404
    assert export(door, as_of=at).rows == model.at(at)
    end = spans_of(door, "other")["as_of"]
    problem = refused_export(door, str(table_id), after=at, upto=end)
    assert (problem["status"], "was dropped at" in problem["detail"]) == (409, True)


def test_names_with_quotes_and_brackets(door: HttpDoor) -> None:
    door.sql('CREATE TABLE "a ""<b>&c ü" ("x""<" INT8 PRIMARY KEY)')
    door.sql('INSERT INTO "a ""<b>&c ü" VALUES (1)')
    name = "a%20%22%3Cb%3E%26c%20%C3%BC"
    answer = door.client.get(f"/v1/tables/{name}/spans")
    assert answer.status_code == 200, answer.text
    table_id = answer.json()["table_id"]
    assert export(door, str(table_id), columns=['x"<']).rows == [{'x"<': 1}]


def test_other_databases_are_asked_by_name(door: HttpDoor) -> None:
    door.sql("CREATE DATABASE d; CREATE TABLE d.public.u (k INT8 PRIMARY KEY)")
    assert export(door, "u", database="d").rows == []
    assert export(door, "d.public.u").rows == []
    assert problem_of(ask_export(door, "u"))["sqlstate"] == "42P01"
    assert refused_export(door, "u", database="none")["sqlstate"] == "3D000"


def test_empty_table_is_a_whole_stream(door: HttpDoor, model: VersionModel) -> None:
    found = export(door)
    assert (found.schema.names, found.rows) == (["k", "v"], [])
