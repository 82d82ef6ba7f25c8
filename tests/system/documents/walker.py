"""Somebody who does what a document says, in a folder and at servers of its own."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
from psycopg import pq

import tailrace
from benchmarks.servers import free_port
from tailrace.api.cli.shell.splitting import split
from tests.harness.server_process import ServerProcess
from tests.system.documents.blocks import Command
from tests.system.documents.replies import REPLY, same, table

PORTS = ("8080", "8081", "8090", "26257", "26258", "26300")
"""Ports that documents name: each is another one here."""
PATIENCE = "-c statement_timeout=60s"
"""A statement that waits for nothing fails, and names itself."""
ASKS_HTTP = ("raw", "relaxed", "replication", "debug", "bench", "backup")
"""Commands of `tailrace` that ask the server at 8080 where they are told no other."""
SERVE = re.compile(r"^((?:\w+=\S+ )*)tailrace serve (\S+)([^&\n#]*?)\s*(?:#.*)?$", re.MULTILINE)
MOMENT = re.compile(r"\d{19}\.\d{10}")
LEADING = re.compile(r"\A(\s|--[^\n]*(\n|\Z))*")
"""Comments before a statement: those behind the one before it."""
STREAM = re.compile(r"(EXPERIMENTAL|CREATE) CHANGEFEED (?!.*\bINTO\b)", re.DOTALL)
SHIM = """#!{python}
import os, sys
words = sys.argv[1:]
if words and words[0] in {asking!r} and not set(words) & {{"--url", "--folder", "--help"}}:
    words += ["--url", "http://127.0.0.1:{port}"]
if words[:1] == ["serve"]:
    words += ["--port", "{port}", "--pg-port", "{pg_port}"]
os.execv({python!r}, [{python!r}, "-m", "tailrace.api.cli", *words])
"""


class Walk:
    """One document's. `failures` is what was not as the document says, a line for each."""

    def __init__(self, document: str, folder: Path) -> None:
        self.failures: list[str] = []
        self._document = document
        self._folder = folder
        self._ports = {port: str(free_port()) for port in PORTS}
        self._names: dict[str, object] = {"tailrace": tailrace}
        self._servers: dict[int, ServerProcess] = {}
        self._clients: dict[str, psycopg.Connection] = {}
        self._job = self._moment = ""  # the last job, and the last timestamp, that was told
        shim = folder / "bin" / "tailrace"
        shim.parent.mkdir(exist_ok=True)
        ports = {"port": self._ports["8080"], "pg_port": self._ports["26257"]}
        text = SHIM.format(python=sys.executable, asking=ASKS_HTTP, **ports)
        shim.write_text(text)
        shim.chmod(0o700)

    def walk(self, commands: list[Command]) -> None:
        if not any("tailrace serve" in command.text for command in commands):
            self._serve("data", ["--insecure"])
        for command in commands:
            where = f"{self._document}:{command.line}"
            try:
                self._do(command, where)
            except Exception as error:
                self.failures.append(f"{where}: {command.text}{error!r}")

    def close(self) -> None:
        self._let_clients_go()
        for server in self._servers.values():
            server.__exit__(None, None, None)
        left = self._folder / "server.pid"  # of a server that a document starts by itself
        if self.failures and left.exists():
            subprocess.run(["kill", "-KILL", left.read_text().strip()], check=False)

    def _let_clients_go(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _do(self, command: Command, where: str) -> None:
        text = self._here(command.text)
        if command.answer is not None:
            self._wait_for_feeds()
        answer = None
        match command.language:
            case "sql":
                self._sql(text, command, where)
                return
            case "sh":
                said, answer = self._shell(text, command)
            case "python":
                said, answer = self._python(text)
            case _:
                said = "\n".join(map(self._request, text.splitlines()))
        if command.answer not in (None, answer):
            self.failures.append(f"{where}: {text}says {answer}, not {command.answer}")
        if command.reply is not None and not same(said, command.reply, self._plain):
            self.failures.append(f"{where}: {text}says\n{said}\nand not\n{command.reply}")

    def _here(self, text: str) -> str:
        for port, here in self._ports.items():
            text = re.sub(rf"\b{port}\b", here, text)
        return text.replace("localhost:", "127.0.0.1:")

    def _plain(self, text: str) -> str:
        """What was said in the document's words."""
        text = text.replace(str(self._folder / "data"), "/srv/data")
        for port, here in self._ports.items():
            text = re.sub(rf"\b{here}\b", port, text)
        return text

    # Servers

    def _serve(self, folder: str, options: list[str]) -> None:
        path = self._folder / folder
        named = dict(itertools.pairwise(options))
        port = int(named.get("--port", self._ports["8080"]))
        if (before := self._servers.pop(port, None)) is not None:
            before.terminate()
            before.__exit__(None, None, None)
            self._let_clients_go()
        if "--pg-port" not in options:
            options = [*options, "--pg-port", self._ports["26257"]]
        self._servers[port] = server = ServerProcess(path, *options, insecure=False)
        with contextlib.chdir(self._folder):
            server.start(port=port)

    def _client(self, database: str) -> psycopg.Connection:
        if database not in self._clients:
            where = f"host=127.0.0.1 port={self._ports['26257']} user=root options='{PATIENCE}'"
            self._clients[database] = psycopg.connect(f"{where} dbname={database}", autocommit=True)
        return self._clients[database]

    def _wait_for_feeds(self) -> None:
        """So that replies that tell of feeds are always the same."""
        for server in self._servers.values():
            [[now]] = server.rows("SELECT cluster_logical_timestamp()")
            server.wait_for_feeds(now)

    # Languages

    def _shell(self, text: str, command: Command) -> tuple[str, tuple[str, str] | None]:
        for asked in SERVE.finditer(text):
            environment, folder, options = asked.groups()
            with _environment(dict(pair.split("=", 1) for pair in shlex.split(environment))):
                self._serve(folder, shlex.split(options))
        text = SERVE.sub("", text)
        if command.answer is not None:
            text = text.replace("curl -s", r"curl -s -w '\n%{http_code} %{content_type}'")
        path = f"{self._folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        url = f"postgresql://root@127.0.0.1:{self._ports['26257']}/defaultdb"
        ran = subprocess.run(
            ["bash", "-euc", text], cwd=self._folder,
            env={**os.environ, "PATH": path, "COLUMNS": "200", "TAILRACE_URL": url},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, (ran.returncode, ran.stderr, ran.stdout)
        if command.answer is None:
            return ran.stdout, None
        body, _, rest = ran.stdout.rpartition("\n")
        status, _, media_type = rest.partition(" ")
        return body, (status, media_type)

    def _python(self, text: str) -> tuple[str, tuple[str, str] | None]:
        said = io.StringIO()
        self._names.pop("answer", None)
        with contextlib.redirect_stdout(said), contextlib.chdir(self._folder):
            exec(compile(text, self._document, "exec"), self._names)
        answer = self._names.get("answer")
        if isinstance(answer, httpx2.Response):
            media_type = answer.headers["content-type"]
            return answer.text, (str(answer.status_code), media_type)
        return said.getvalue(), None

    def _request(self, line: str) -> str:
        """A line as `PUT /v1/keyspaces/sessions/keys/ada signed in`."""
        method, path, *body = line.split(" ", 2)
        json = {"content-type": "application/json"} if body and body[0][:1] == "{" else {}
        url = f"http://127.0.0.1:{self._ports['8080']}{path}"
        content = body[0].encode() if body else None
        answer = httpx2.request(method, url, content=content, headers=json)
        assert answer.status_code == 200, (line, answer.text)
        return answer.text

    def _sql(self, text: str, command: Command, where: str) -> None:
        client = self._client(command.database or "defaultdb")
        ran = None
        for statement, reply in _statements(text):
            if self._moment:
                statement = re.sub(r"(?<=UP TO )\d{19}\.\d{10}", self._moment, statement)
            if self._job:
                statement = re.sub(r"\b\d{17,19}\b(?!\.\d)", self._job, statement)
            ran = _Ran(client.pgconn, statement)
            if ran.names == ["job_id"] and statement.lstrip().startswith("CREATE"):
                self._job = ran.rows[0][0]
            self._moment = (MOMENT.findall(str(ran.rows)) or [self._moment])[-1]
            if reply is None and ran.state is None:
                continue
            if reply is None or not any(same(said, reply, self._plain) for said in ran.sayings()):
                self.failures.append(f"{where}: {statement}: {ran.sayings()}, not {reply!r}")
        if command.reply is not None:
            assert ran is not None, where
            names, *rows = table(command.reply)
            shown = "\n".join(map(" | ".join, [names, *rows]))
            found = "\n".join(map(" | ".join, [ran.names if names else [], *ran.rows]))
            if not same(found, shown, self._plain):
                self.failures.append(f"{where}: {text}says\n{found}\nand not\n{shown}")


class _Ran:
    """What a statement of the simple protocol said: its rows as texts, its tag, or its error."""

    def __init__(self, connection: pq.abc.PGconn, statement: str) -> None:
        self.state: str | None = None
        self.message = self.tag = ""
        self.names: list[str] = []
        self.rows: list[list[str]] = []
        connection.send_query(statement.encode())
        stream = STREAM.match(statement) is not None
        if stream:
            connection.set_single_row_mode()
        while (result := connection.get_result()) is not None:
            self._take(result)
            if result.status == pq.ExecStatus.COPY_IN:
                connection.put_copy_end()
            elif result.status == pq.ExecStatus.COPY_OUT:
                while connection.get_copy_data(0)[0] > 0:
                    pass
            elif stream:
                connection.get_cancel().cancel()
                stream = False
        if STREAM.match(statement) and self.state == "57014":
            self.state = None
        if self.state is not None and connection.transaction_status == pq.TransactionStatus.INERROR:
            connection.exec_(b"ROLLBACK")

    def _take(self, result: pq.abc.PGresult) -> None:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b"?"
            self.state, self.message = state.decode(), result.error_message.decode()
            return
        self.tag = (result.command_status or b"").decode()
        self.names = [(result.fname(n) or b"").decode() for n in range(result.nfields)]
        for row in range(result.ntuples):
            values = (result.get_value(row, column) for column in range(result.nfields))
            self.rows.append(["NULL" if v is None else _text(v.decode()) for v in values])

    def sayings(self) -> list[str]:
        """The forms in which a document may tell the reply behind a statement."""
        if self.state is not None:
            return [self.state, self.message]
        rows = [", ".join(row) for row in self.rows]
        return [self.tag, ", ".join(self.names), "; ".join(rows)]


def _statements(text: str) -> Iterator[tuple[str, str | None]]:
    """Each with the reply in the comment behind it."""
    statements, rest = split(text)
    end = 0
    for statement in [*statements, rest]:
        bare = LEADING.sub("", statement).strip()
        if not bare:
            continue
        end = text.index(bare, end) + len(bare)
        told = REPLY.match(text, end)
        yield bare, None if told is None else told[1]


def _text(value: str) -> str:
    """BYTES as the text that they are, if they are one."""
    return bytes.fromhex(value[2:]).decode(errors="replace") if value[:2] == "\\x" else value


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
