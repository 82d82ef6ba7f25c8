"""schemathesis on a real server: thousands of requests made up from its own OpenAPI document."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SEED = 1
EXAMPLES_MAX = 30
"""Requests made up at random for each operation, behind some thousands that cover each schema."""

PATIENCE_SECONDS = 300

ENDLESS = r"/events$|/rangefeed$"
"""Streams that end when the client goes: a request for one would wait for its time-out."""

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
"""What holds of any reply. Not whether made-up data is refused: any text is a fair statement."""


def run_schemathesis(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    hooks = Path(__file__).parent
    return subprocess.run(
        [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
            *("run", f"{url}/openapi.json", "--no-color", "--warnings", "off"),
            *("--seed", str(SEED), "--max-examples", str(EXAMPLES_MAX), "--no-shrink"),
            *("--phases", "coverage,fuzzing", "--generation-database", "none"),
            *("--checks", ",".join(CHECKS), "--continue-on-failure"),
            *("--exclude-path-regex", ENDLESS, "--request-timeout", "20"),
        ],
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "openapi_bodies", "PYTHONPATH": str(hooks)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


def test_no_made_up_request_meets_a_server_error_or_an_undescribed_reply(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE orders (k INT8 PRIMARY KEY, note STRING)")
        found = run_schemathesis(server.url, tmp_path)
        assert found.returncode == 0, found.stdout[-8_000:] + found.stderr[-2_000:]
        assert "No issues found" in found.stdout, found.stdout[-2_000:]
        assert server.rows("SELECT 1") == [[1]], "it serves as before"
