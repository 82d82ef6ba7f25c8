"""docs/rest.md and README.md on a clean store: each request as it is written, and the reply that
stands behind it, clocks and ids aside."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
EXCHANGE = re.compile(
    r"^```\w*\n(?P<asked>[^`]*?)^```\n\n`(?P<status>\d+) [^`]+`, `(?P<type>[^`]+)`\n\n"
    r"^```json\n(?P<said>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

NAMED = (
    (r"\d{19}\.\d{10}", "<timestamp>"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
    (r"[\d.]+ m?s behind", "<behind>"),
)
"""What is another at each run, and how it is read."""

CHANGING = frozenset({"durable_index"})


def named(value: object, folder: str) -> object:
    match value:
        case dict():
            return {key: named(each, folder) for key, each in value.items() if key not in CHANGING}
        case list():
            return [named(each, folder) for each in value]
        case str():
            for pattern, name in NAMED:
                value = re.sub(pattern, name, value)
            return value.replace(folder, "/srv/data")
        case int() if value > 10**17:
            return "<id>"
    return value


def ask(server: ServerProcess, asked: str) -> tuple[str, str, str]:
    """The status, the type and the body of the answer to a curl command, or to a Python call."""
    if "curl" not in asked:
        table = pa.table({"id": [10, 11], "note": ["ten", "eleven"]})
        asked = asked.replace("http://localhost:8080", server.url)
        names: dict[str, object] = {"io": io, "pa": pa, "table": table, "httpx2": httpx2}
        exec(asked.replace("httpx2.post(", "answer = httpx2.post("), names)
        answer = names["answer"]
        assert isinstance(answer, httpx2.Response)
        return str(answer.status_code), answer.headers["content-type"], answer.text
    text = asked.replace("localhost:8080", f"127.0.0.1:{server.port}")
    text = text.replace("curl -s", r"curl -s -w '\n%{http_code} %{content_type}'")
    said = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=True
    ).stdout
    body, _, rest = said.rpartition("\n")
    status, _, media_type = rest.partition(" ")
    return status, media_type, body


def test_replies_of_rest_are_those_of_the_document(tmp_path: Path) -> None:
    exchanges = [*EXCHANGE.finditer((ROOT / "docs" / "rest.md").read_text())]
    assert len(exchanges) >= 20
    with ServerProcess(tmp_path / "data") as server:
        for exchange in exchanges:
            [[now]] = server.rows("SELECT cluster_logical_timestamp()")
            server.wait_for_feeds(now)  # so that replies that tell of feeds are always the same
            status, media_type, body = ask(server, exchange["asked"])
            assert (status, media_type) == (exchange["status"], exchange["type"]), exchange["asked"]
            found, expected = (
                named(json.loads(text), str(tmp_path / "data")) for text in (body, exchange["said"])
            )
            assert found == expected, exchange["asked"]


def test_the_program_of_the_readme_runs_and_says_what_it_says(tmp_path: Path) -> None:
    (program,) = PROGRAM.findall((ROOT / "README.md").read_text())
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "total: [[13.50]]" in told.stdout and "orders b'[1]'" in told.stdout
