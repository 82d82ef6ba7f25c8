"""docs/relaxed.md, run from its beginning to its end: its Python, its shell and its SQL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from benchmarks.servers import tailrace_server

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

DOCUMENT = Path(__file__).parents[2] / "docs/relaxed.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```(?:\n\n((?:    [^\n]*\n)+))?", re.DOTALL)


class Reader:
    """Somebody who does what the document says, in a folder of its own."""

    def __init__(self, folder: Path, url: str, client: psycopg.Connection) -> None:
        self.names: dict[str, object] = {}
        self._folder = folder
        self._url = url
        self._client = client
        program = folder / "bin" / "tailrace"
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\nexec {sys.executable} -m tailrace.api.cli "$@" --url {url}\n'
        )
        program.chmod(0o700)

    def do(self, language: str, text: str) -> str:
        """What the block shows: the rows of its last SELECT."""
        match language:
            case "python":
                exec(compile(text, str(DOCUMENT), "exec"), self.names)
            case "sh":
                text = text.replace("http://127.0.0.1:8080", self._url)
                path = f"{self._folder / 'bin'}:/usr/bin:/bin"
                told = subprocess.run(
                    text, shell=True, cwd=self._folder, env={"PATH": path}, capture_output=True,
                    text=True, check=False,
                )  # fmt: skip
                assert told.returncode == 0 and '"title"' not in told.stdout, told
            case "sql":
                return self._sql(text)
            case _:
                raise AssertionError(f"nobody runs {language}")
        return ""

    def _sql(self, text: str) -> str:
        shown = ""
        for statement in filter(None, map(str.strip, text.split(";"))):
            cursor = self._client.execute(statement.encode())
            if statement.startswith("SELECT"):
                rows = [["NULL" if v is None else str(v) for v in row] for row in cursor.fetchall()]
                shown = "".join("    " + " | ".join(row) + "\n" for row in rows)
        return shown


def test_document_says_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(DOCUMENT.read_text())
    with tailrace_server(tmp_path) as (url, port):
        where = f"host=127.0.0.1 port={port} user=root dbname=defaultdb"
        with psycopg.connect(where, autocommit=True) as client:
            reader = Reader(tmp_path, url, client)
            for language, text, shown in blocks:
                said = reader.do(language, text)
                assert said == shown or not shown, f"{text}\n{said}"
    assert sum(bool(shown) for _, _, shown in blocks) == 3
