"""The commands of docs/raw.md do what they are there for."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import tailrace
from tests.api.test_keyspaces import cli
from tests.harness.http_door import HttpDoor

DOCUMENT = (Path(__file__).parents[2] / "docs/raw.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", DOCUMENT, flags=re.S)


def test_statements_requests_and_commands_run() -> None:
    with HttpDoor() as door:
        for _, kind, text in re.findall(r"(```)(sql|http|sh)\n(.*?)```", DOCUMENT, flags=re.S):
            for line in text.splitlines():
                _run(door, kind, line)


def _run(door: HttpDoor, kind: str, line: str) -> None:
    if kind == "sql":
        door.sql(line)
    elif kind == "sh":
        program, command, *arguments = shlex.split(line)
        assert (program, command) == ("tailrace", "raw"), line
        cli(door, *arguments)
    else:
        method, path, *body = line.split(" ", 2)
        json = (
            {"content-type": "application/json"}
            if path.endswith(("batch", "cas", "open", "ingest"))
            else {}
        )
        content = body[0].encode() if body else None
        answer = door.client.request(method, path, content=content, headers=json)
        assert answer.status_code == 200, (line, answer.text)


def test_the_program_runs() -> None:
    (program,) = blocks("python")
    exec(textwrap.dedent(program), {"tailrace": tailrace})
