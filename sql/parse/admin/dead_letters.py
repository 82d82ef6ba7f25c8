"""The grammar of dead letters: `… DEAD LETTERS FOR CHANGEFEED job [TABLE name] [KEY 'key']`."""

from __future__ import annotations

from collections.abc import Callable

from ...syntax.changefeed_statements import LetterChoice, LetterStatement
from ..cursor import Cursor


def dead_letters(
    make: Callable[[LetterChoice], LetterStatement],
) -> Callable[[Cursor], LetterStatement]:
    """`FOR CHANGEFEED job [TABLE name] [KEY 'key']`"""

    def grammar(cursor: Cursor) -> LetterStatement:
        cursor.expect_words("for", "changefeed")
        job_id = cursor.integer("a job's id")
        table = cursor.object_name("a table's name") if cursor.accept_words("table") else None
        key = cursor.string("a letter's key") if cursor.accept_words("key") else None
        return make(LetterChoice(job_id=job_id, table=table, key=key))

    return grammar
