"""Errors as people read them: the message, the line with a caret, detail and hint."""

from __future__ import annotations

import psycopg


def told(error: psycopg.Error, text: str) -> str:
    """The text of an error in `text`, with its last line's end."""
    diagnosis = error.diag
    message = diagnosis.message_primary or str(error).strip() or type(error).__name__
    state = f" (SQLSTATE {diagnosis.sqlstate})" if diagnosis.sqlstate else ""
    lines = [f"{diagnosis.severity or 'ERROR'}:  {message}{state}"]
    if diagnosis.statement_position:
        lines += pointed(text, int(diagnosis.statement_position))
    if diagnosis.message_detail:
        lines.append(f"DETAIL:  {diagnosis.message_detail}")
    if diagnosis.message_hint:
        lines.append(f"HINT:  {diagnosis.message_hint}")
    return "\n".join(lines) + "\n"


def pointed(text: str, position: int) -> list[str]:
    """The line of a one-based position, and a caret under it.

    >>> pointed("SELECT 1,\\n  FROM t", 13)
    ['LINE 2:   FROM t', '          ^']
    """
    before = text[: position - 1]
    number = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1)
    lines = text.split("\n")
    line = lines[min(number, len(lines)) - 1]
    head = f"LINE {number}: "
    blank = "".join("\t" if c == "\t" else " " for c in line[:column])
    return [head + line, " " * len(head) + blank + "^"]
