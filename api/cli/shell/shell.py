"""The shell: statements read from a terminal or a script, run, and their results written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

import psycopg
from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, InMemoryHistory

from .client import Client, ConnectFailed
from .commands import HELP, STATEMENTS, statements_of
from .completion import CatalogCompleter
from .errors import told
from .formats import Format, write, write_fed
from .harmless import Harmless, harmless
from .splitting import split

SINKLESS_FEED = re.compile(
    r"\s*(CREATE|EXPERIMENTAL)\s+CHANGEFEED\b(?!.*\bINTO\s+')", re.IGNORECASE | re.DOTALL
)
"""A statement whose rows are shown as they come, because there is no last one."""

CHANGES_CATALOG = ("ALTER", "CREATE", "DROP", "TRUNCATE", "COMMIT")


class Shell:
    """One connection. Results go to `out`, everything else to `err`: harmless on a terminal, where
    a program that reads results gets them as they are."""

    def __init__(self, client: Client, format: Format, out: TextIO, err: TextIO) -> None:
        self.format = format
        self.timing = False
        self._client = client
        self._out = Harmless(out) if out.isatty() else out
        self._err = Harmless(err)
        self._completer = CatalogCompleter(self._names)

    @classmethod
    def connect(cls, url: str, format: Format, out: TextIO, err: TextIO) -> Shell:
        """Raises ConnectFailed."""
        client = Client(url, lambda notice: print(harmless(notice), file=err))
        return cls(client, format, out, err)

    def close(self) -> None:
        self._client.close()

    # Statements

    def run_script(self, text: str) -> bool:
        """Runs statements and commands up to the first that fails; says whether all of them ran."""
        for piece in _pieces(text):
            if not piece.startswith("\\"):
                complete, rest = split(piece)
                statements = [*complete, *([rest.strip()] if rest.strip() else ())]
            else:
                word, argument = _command(piece)
                listed = statements_of(word, argument)
                if listed is None and not self._other_command(word, argument):
                    return True
                statements = list(listed or ())
            if not all(map(self.run, statements)):
                return False
        return True

    def run(self, text: str) -> bool:
        """Runs a text that is complete. What goes wrong is written, and said."""
        began = time.monotonic()
        try:
            if SINKLESS_FEED.match(text):
                self._follow(text)
                return True
            for outcome in self._client.run(text):
                if outcome.rows is not None:
                    self._out.write(write(outcome.rows, self.format))
                elif outcome.tag and self.format in (Format.TABLE, Format.RECORDS):
                    print(outcome.tag, file=self._out)
                if outcome.tag.startswith(CHANGES_CATALOG):
                    self._completer.forget()
        except psycopg.Error as error:
            self._out.flush()
            self._err.write(told(error, text))
            return False
        finally:
            self._out.flush()
        if self.timing:
            print(f"Time: {(time.monotonic() - began) * 1000:.1f} ms", file=self._err)
        return True

    def _follow(self, text: str) -> None:
        for place, rows in enumerate(self._client.feed(text)):
            self._out.write(write_fed(rows, self.format, first=place == 0))
            self._out.flush()

    def _names(self) -> Iterable[str]:
        """Schemas, tables and columns; none where the server cannot say at this moment."""
        if self._client.transaction == "ERROR":
            return
        query = (
            "SELECT table_schema, table_name, column_name FROM information_schema.columns "
            "WHERE table_schema NOT IN ('information_schema', 'pg_catalog', 'tailrace_internal')"
        )
        try:
            for outcome in self._client.run(query):
                assert outcome.rows is not None, query
                for row in outcome.rows.rows:
                    yield from (value for value in row if value is not None)
        except psycopg.Error:
            return

    # Commands

    def command(self, line: str) -> bool:
        """Carries out a backslash command. False for \\q."""
        word, argument = _command(line)
        statements = statements_of(word, argument)
        if statements is not None:
            for statement in statements:
                if not self.run(statement):
                    break
            return True
        return self._other_command(word, argument)

    def _other_command(self, word: str, argument: str) -> bool:
        match word:
            case "q":
                return False
            case "?" | "h":
                self._err.write(HELP)
            case "x":
                records = self.format is Format.RECORDS
                self.format = Format.TABLE if records else Format.RECORDS
                print(f"Format is {self.format.value}.", file=self._err)
            case "format":
                self._set_format(argument)
            case "timing":
                self.timing = not self.timing
                print(f"Timing is {'on' if self.timing else 'off'}.", file=self._err)
            case "c":
                self._switch(argument)
            case "i":
                self._run_file(Path(argument))
            case "conninfo":
                print(self._where, file=self._err)
            case _ if word in STATEMENTS:
                print(f"\\{word} takes no argument, and has {argument}", file=self._err)
            case _:
                print(f"unknown command \\{word}: \\? lists them", file=self._err)
        return True

    def _set_format(self, name: str) -> None:
        try:
            self.format = Format(name.lower())
        except ValueError:
            names = ", ".join(format.value for format in Format)
            print(f"no format {name!r}: there are {names}", file=self._err)

    def _switch(self, database: str) -> None:
        try:
            self._client.switch(database)
            self._completer.forget()
        except ConnectFailed as error:
            print(error, file=self._err)

    def _run_file(self, path: Path) -> None:
        try:
            self.run_script(path.read_text())
        except OSError as error:
            print(f"cannot read {path}: {error.strerror}", file=self._err)

    @property
    def _where(self) -> str:
        client = self._client
        return f"{client.user}@{client.address}/{client.database}"

    # A terminal

    def prompts(self, history: Path | None) -> None:
        """Reads from the terminal until \\q or the end of input."""
        kept = InMemoryHistory() if history is None else FileHistory(str(history))
        session: PromptSession[str] = PromptSession(
            history=kept, completer=self._completer, complete_while_typing=False
        )
        for text in self._texts(lambda shown: session.prompt(FormattedText([("bold", shown)]))):
            if text.startswith("\\"):
                if not self.command(text):
                    return
            else:
                self._run_to_end(text)
            if self._client.lost:
                print("The connection is lost.", file=self._err)
                return

    def _run_to_end(self, text: str) -> None:
        try:
            self.run(text)
        except KeyboardInterrupt:
            print("canceled", file=self._err)

    def _texts(self, ask: Callable[[str], str]) -> Iterator[str]:
        """Complete statements and commands. Ctrl-C drops what is typed, Ctrl-D ends."""
        buffer = ""
        while True:
            state = self._client.transaction
            shown = f"{self._where}{' ' * bool(state)}{state}> " if not buffer else "-> "
            try:
                line = ask(shown)
            except KeyboardInterrupt:
                buffer = ""
                continue
            except EOFError:
                return
            if not buffer and line.strip().startswith("\\"):
                yield line.strip()
                continue
            if not buffer and line.strip().lower() in ("exit", "quit"):
                return
            complete, buffer = split(f"{buffer}\n{line}" if buffer else line)
            yield from complete
            buffer = buffer if buffer.strip() else ""


def _command(line: str) -> tuple[str, str]:
    """The word of a backslash command, and what is behind it."""
    word, _, argument = line.removeprefix("\\").partition(" ")
    return word.rstrip(";"), argument.strip()


def _pieces(text: str) -> Iterator[str]:
    """The backslash commands of a script, each by itself, and the statements between them.

    A command is a line of its own that begins where a statement may.
    """
    block: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("\\") and not split("\n".join(block))[1].strip():
            yield "\n".join(block)
            block = []
            yield line.strip()
        else:
            block.append(line)
    yield "\n".join(block)
