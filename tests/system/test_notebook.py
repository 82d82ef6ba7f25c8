"""The store in a notebook's kernel: frames of pandas and polars, Arrow, and what a cell shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("default")]  # Jupyter has its own

QUERY = 'db.sql("SELECT id, note, amount FROM orders ORDER BY id")'
CELLS = (
    'import tailrace\ndb = tailrace.open("data")',
    'db.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING, amount DECIMAL(10, 2))")',
    """db.sql("INSERT INTO orders VALUES (1, '<b>', 12.50), (2, NULL, 7)")""",
    QUERY,
    f'{QUERY}.df()["amount"].sum()',
    f"{QUERY}.df()",
    f'import polars\npolars.DataFrame({QUERY})["id"].to_list() + {QUERY}.pl()["id"].to_list()',
    f"{QUERY}.arrow().column_names",
    'async with await tailrace.aopen(":memory:") as other:\n'
    '    shown = (await other.sql("SELECT 7")).fetchone()\nshown',
    'db.sql("SELECT vv FROM orders")',
    "db.close()",
)


def test_a_notebook_shows_what_the_store_says(tmp_path: Path) -> None:
    code: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "execution_count": None,
        "outputs": [],
    }
    cells = [{**code, "id": f"c{place}", "source": cell} for place, cell in enumerate(CELLS)]
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    notebook: Any = nbformat.from_dict(content)  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": tmp_path}},
    )
    client.execute()
    made, written, shown, total, frame, ids, names, apart, wrong = (
        cell.outputs for cell in notebook.cells[1:10]
    )
    assert "CREATE TABLE" in made[0]["data"]["text/html"]
    assert "INSERT 0 2" in written[0]["data"]["text/html"]
    html = shown[0]["data"]["text/html"]
    assert "<th>note</th>" in html and "&lt;b&gt;" in html and "NULL" in html
    assert shown[0]["data"]["text/plain"] == "<Result SELECT 2: id, note, amount>"
    assert total[0]["data"]["text/plain"] == "Decimal('19.50')"
    assert "dataframe" in frame[0]["data"]["text/html"]
    assert ids[0]["data"]["text/plain"] == "[1, 2, 1, 2]"
    assert names[0]["data"]["text/plain"] == "['id', 'note', 'amount']"
    assert apart[0]["data"]["text/plain"] == "(7,)"
    assert wrong[0]["ename"] == "SQLError" and 'column "vv"' in wrong[0]["evalue"]
    assert notebook.cells[-1].outputs == []
