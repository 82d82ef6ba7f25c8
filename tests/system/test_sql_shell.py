"""`tailrace sql` as a process: on a terminal of its own, and in scripts."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SHELL = (sys.executable, "-m", "tailrace.api.cli", "sql")
PATIENCE_SECONDS = 30.0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ServerProcess(tmp_path_factory.mktemp("shell") / "data") as process:
        yield f"postgresql://root@127.0.0.1:{process.pg_port}/defaultdb"


def script(url: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SHELL, url, *arguments], input=text, capture_output=True, text=True)


class Terminal:
    """A shell on a pseudo-terminal."""

    def __init__(self, url: str, folder: Path) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [*SHELL, url],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(folder)},
            start_new_session=True,
        )
        os.close(slave)
        self._seen = ""

    def write(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, wanted: str) -> str:
        """What was shown up to `wanted`, which must come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while wanted not in self._seen:
            left = deadline - time.monotonic()
            assert left > 0, (wanted, self._seen)
            if select.select([self._master], [], [], left)[0]:
                self._seen += os.read(self._master, 65536).decode(errors="replace")
                if "\x1b[6n" in self._seen:  # where is the cursor?
                    self._seen = self._seen.replace("\x1b[6n", "")
                    self.write("\x1b[1;1R")
        shown, _, self._seen = self._seen.partition(wanted)
        return shown

    def close(self) -> int:
        """Ends it at a prompt that was waited for: elsewhere the end of input would be lost."""
        self.write("\x04")
        status = self._process.wait(PATIENCE_SECONDS)
        os.close(self._master)
        return status


@pytest.fixture
def terminal(url: str, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(url, tmp_path)
    opened.until("defaultdb>")
    yield opened
    assert opened.close() == 0
    assert (tmp_path / "tailrace" / "sql_history").stat().st_mode & 0o077 == 0


def test_statements_span_lines(terminal: Terminal) -> None:
    terminal.write("SELECT 40\r")
    terminal.until("->")
    terminal.write(" + 2 AS answer;\r")
    terminal.until("(1 row)")
    terminal.until("defaultdb>")


def test_the_prompt_knows_the_transaction(terminal: Terminal) -> None:
    terminal.write("BEGIN;\r")
    terminal.until("OPEN>")
    terminal.write("SELEC 1;\r")
    shown = terminal.until("HINT")
    assert "42601" in shown
    assert "^" in shown
    terminal.until("ERROR>")
    terminal.write("ROLLBACK;\r")
    terminal.until("defaultdb>")


def test_interrupt_cancels_the_statement(terminal: Terminal, url: str) -> None:
    terminal.write(
        "SELECT count(*) FROM generate_series(1, 200000) a, generate_series(1, 200000) b;\r"
    )
    terminal.until("b;")
    with psycopg.connect(url, autocommit=True) as other:
        running = (
            "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%200000) b%'"
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not other.execute(running + " AND pid <> pg_backend_pid()").fetchall():
            assert time.monotonic() < deadline, "the statement has not begun"
    terminal.write("\x03")
    terminal.until("defaultdb>")
    terminal.write("SELECT 'still' || ' here';\r")
    terminal.until("still here")
    terminal.until("defaultdb>")


def test_commands_describe_tables(terminal: Terminal) -> None:
    terminal.write("CREATE TABLE described (k INT8 PRIMARY KEY, CONSTRAINT small CHECK (k < 9));\r")
    terminal.until("CREATE TABLE\r")
    terminal.until("defaultdb>")
    terminal.write("\\d described\r")
    terminal.until("described_pkey")
    terminal.until("CHECK")
    terminal.until("defaultdb>")
    terminal.write("\\x\r")
    terminal.until("Format is records.")
    terminal.until("defaultdb>")
    terminal.write("SELECT k FROM descr\t")
    terminal.until("ibed")
    terminal.write(" LIMIT 1;\r")
    terminal.until("(0 rows)")
    terminal.until("defaultdb>")


def test_scripts_write_results_alone(url: str) -> None:
    text = "CREATE TABLE s (k INT8 PRIMARY KEY); INSERT INTO s VALUES (1), (2); SELECT k FROM s"
    done = script(url, "--format", "json", text=text)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"k": 1}, {"k": 2}]
    done = script(url, "-e", "SELECT k FROM s WHERE k = 2", "--format", "csv")
    assert done.stdout == "k\n2\n"


def test_scripts_stop_at_the_first_error(url: str) -> None:
    done = script(url, text="SELECT 1 AS one; SELECT nosuch; SELECT 3 AS three;")
    assert done.returncode == 1
    assert done.stdout == "one\n1\n"
    assert "42703" in done.stderr


def test_no_server_is_exit_code_two(url: str) -> None:
    done = script("postgresql://root@127.0.0.1:1/defaultdb", "-e", "SELECT 1")
    assert done.returncode == 2
    assert done.stderr.startswith("tailrace: ")


def test_a_rest_address_is_told_from_a_postgres_one(url: str) -> None:
    done = script("http://127.0.0.1:8080", "-e", "SELECT 1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "REST door" in done.stderr
    assert "postgresql://root@127.0.0.1:26257/defaultdb" in done.stderr


def test_scripts_take_backslash_commands(url: str) -> None:
    script(url, "-e", "CREATE TABLE fed (k INT8 PRIMARY KEY)")
    script(url, "-e", "CREATE CHANGEFEED FOR fed INTO 'null://'")
    done = script(url, "-e", "\\feeds", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [feed["sink_uri"] for feed in json.loads(done.stdout)] == ["null://"]
    unknown = script(url, "-e", "\\nosuch")
    assert "unknown command \\nosuch" in unknown.stderr


def test_an_error_shows_what_a_terminal_would_obey(url: str) -> None:
    done = script(url, "-e", "SELECT '\x1b]0;renamed\x07'::INT8")
    assert done.returncode == 1
    assert "\\x1b]0;renamed\\x07" in done.stderr
    assert all(c.isprintable() or c == "\n" for c in done.stderr), repr(done.stderr)


def test_a_terminal_is_shown_no_escape_sequence_of_a_value(terminal: Terminal) -> None:
    terminal.write("SELECT chr(27) || ']0;renamed' || chr(7) AS \"plain\";\r")
    shown = terminal.until("(1 row)")
    assert "\\x1b]0;renamed\\x07" in shown.rpartition("plain")[2]
    assert "\x1b]0;" not in shown
    terminal.until("defaultdb>")


def test_a_feed_shows_each_row_as_it_comes(url: str) -> None:
    script(url, "-e", "CREATE TABLE orders (k INT8 PRIMARY KEY); INSERT INTO orders VALUES (1)")
    text = "EXPERIMENTAL CHANGEFEED FOR orders"
    command = (*SHELL, url, "-e", text, "--format")
    with subprocess.Popen((*command, "ndjson"), stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        row = {"table": "orders", "key": [1], "value": {"after": {"k": 1}}}
        assert json.loads(shell.stdout.readline()) == row
        script(url, "-e", "INSERT INTO orders VALUES (2)")
        assert json.loads(shell.stdout.readline())["key"] == [2]
        shell.send_signal(signal.SIGINT)
        assert shell.wait(PATIENCE_SECONDS) == 1
    done = script(url, "-e", f"{text} WITH initial_scan = 'only'", "--format", "tsv")
    assert done.stdout.splitlines()[:2] == ["table\tkey\tvalue", 'orders\t[1]\t{"after":{"k":1}}']
