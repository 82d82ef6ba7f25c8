"""DuckDB's functions on documents give every digit, by its own way and by ours alike."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

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
        ("CAST(0.0000001 AS DECIMAL(20, 10))", "0.0000001000"),
        ("CAST('1e20' AS DOUBLE)", "100000000000000000000"),
        ("CAST('nan' AS DOUBLE)", '"NaN"'),
        ("CAST(-12345678901234567890 AS HUGEINT)", "-12345678901234567890"),
        ("'a\"b'", '"a\\"b"'),
        ("CAST('\\x01\\xff' AS BLOB)", '"\\\\x01ff"'),
        ("[[1.50], NULL, []]", "[[1.50], null, []]"),
        ("DATE '2024-01-02'", '"2024-01-02"'),
        ("TIMESTAMP '2024-01-02 03:04:05.50'", '"2024-01-02T03:04:05.5"'),
        ("TIMESTAMPTZ '2024-01-02 03:04:05+00'", '"2024-01-02T03:04:05+00:00"'),
        ("TIME '12:00'", '"12:00:00"'),
        ("INTERVAL '1 day'", '"1 day"'),
        ("TRUE", "true"),
        ("CAST(NULL AS DOUBLE)", None),
    ],
)
def test_value_of_any_type_is_a_document(
    evaluator: duckdb.DuckDBPyConnection, value: str, document: str | None
) -> None:
    assert _asked(evaluator, f"jsonb_of({value})", ["1"]) == [document]
