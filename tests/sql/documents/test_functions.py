"""DuckDB's functions on documents give every digit, by its own way and by ours alike."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tailrace
from tailrace import SQLError
from tailrace.catalog.values.json_text import write_json
from tailrace.sql.builtins.documents import operators
from tailrace.sql.builtins.documents.functions import install
from tests.harness.documents import VALUES


@pytest.fixture(scope="module")
def evaluator() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.execute("SET arrow_lossless_conversion = true")
    install(connection)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def db() -> Iterator[tailrace.Database]:
    with tailrace.open(":memory:") as opened:
        yield opened


def _asked(
    evaluator: duckdb.DuckDBPyConnection, expression: str, documents: list[str]
) -> list[object]:
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(documents, pa.string()))
    evaluator.register("docs", pa.table({"doc": column, "n": pa.array(range(len(documents)))}))
    rows = evaluator.execute(f"SELECT {expression} FROM docs ORDER BY n").fetchall()
    return [value for (value,) in rows]


HOLDERS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"k": VALUES}),
    st.lists(VALUES, min_size=1, max_size=3),
).map(write_json)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(HOLDERS, min_size=1, max_size=20))
@example(['{"k": 1.50}', '{"k": 12345678901234567890.123456789}'])
def test_macros_follow_steps_as_python_does(
    evaluator: duckdb.DuckDBPyConnection, documents: list[str]
) -> None:
    call = "(doc, '$.\"k\"', ['k'])"
    found = [operators.element(document, "k") for document in documents]
    assert _asked(evaluator, f"jsonb_member{call}", documents) == found
    texts = [None if one is None else operators.text_of(one) for one in found]
    assert _asked(evaluator, f"jsonb_member_text{call}", documents) == texts


def test_every_letter_is_written_as_postgres_does(evaluator: duckdb.DuckDBPyConnection) -> None:
    documents = [write_json({"k": chr(code)}) for code in (*range(1, 0xD800), 0x1F600)]
    call = "jsonb_member(doc, '$.\"k\"', ['k'])"
    assert _asked(evaluator, call, documents) == [operators.member_of(d, "k") for d in documents]


@pytest.mark.parametrize(
    ("value", "document"),
    [
        ("1.50", "1.50"),
        ("0.0000001::DECIMAL(20, 10)", "0.0000001000"),
        ("1e20::FLOAT8", "100000000000000000000"),
        ("'nan'::FLOAT8", '"NaN"'),
        ("'-inf'::FLOAT4", '"-Infinity"'),
        (
            "(SELECT sum(n) FROM (VALUES (9223372036854775807), (1)) AS v (n))",
            "9223372036854775808",
        ),
        ("'a\"b'::TEXT", '"a\\"b"'),
        ("chr(31) || chr(10)", '"\\u001f\\n"'),
        ("'\\x01ff'::BYTES", '"\\\\x01ff"'),
        ("ARRAY[1.50, NULL]", "[1.50, null]"),
        ("ARRAY['NULL', NULL, '']", '["NULL", null, ""]'),
        ("'{}'::TEXT[]", "[]"),
        ("DATE '2024-01-02'", '"2024-01-02"'),
        ("TIMESTAMP '2024-01-02 03:04:05.50'", '"2024-01-02T03:04:05.5"'),
        ("TIMESTAMPTZ '2024-01-02 03:04:05+00'", '"2024-01-02T03:04:05+00:00"'),
        ("TIME '12:00'", '"12:00:00"'),
        ("INTERVAL '1 day'", '"1 day"'),
        ("TRUE", "true"),
        ("NULL::FLOAT8", None),
        ("json_build_object(1.50, 1, TRUE, 2)::TEXT", '"{\\"1.50\\": 1, \\"true\\": 2}"'),
        ("json_build_array('a', $1)", '["a", "b"]'),
    ],
)
def test_value_of_any_type_is_a_document(
    db: tailrace.Database, value: str, document: str | None
) -> None:
    assert db.sql(f"SELECT to_jsonb({value})", ("b",) if "$1" in value else ()).fetchall() == [
        (document,)
    ]


def test_no_member_is_named_by_null(db: tailrace.Database) -> None:
    with pytest.raises(SQLError, match="key must not be null") as raised:
        db.sql("SELECT jsonb_build_object(NULL::TEXT, 1)").fetchall()
    assert raised.value.sqlstate == "22023"
