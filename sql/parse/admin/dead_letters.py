"""The grammar of dead letters: `… DEAD LETTERS FOR CHANGEFEED job [TABLE name] [KEY 'key']`."""

from __future__ import annotations

from ...syntax.changefeed_statements import (
    LetterChoice,
    RetryDeadLetters,
    ShowDeadLetters,
    SkipDeadLetters,
)
from ..cursor import Cursor


def show_dead_letters(cursor: Cursor) -> ShowDeadLetters:
    return ShowDeadLetters(_chosen(cursor))


def retry_dead_letters(cursor: Cursor) -> RetryDeadLetters:
    return RetryDeadLetters(_chosen(cursor))


def skip_dead_letters(cursor: Cursor) -> SkipDeadLetters:
    return SkipDeadLetters(_chosen(cursor))


def _chosen(cursor: Cursor) -> LetterChoice:
    cursor.expect_words("for", "changefeed")
    job_id = cursor.integer("a job's id")
    table = cursor.object_name("a table's name") if cursor.accept_words("table") else None
    key = cursor.string("a letter's key") if cursor.accept_words("key") else None
    cursor.expect_end()
    return LetterChoice(job_id=job_id, table=table, key=key)
