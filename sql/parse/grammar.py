"""From text to statements: which grammar reads what begins with which word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ..syntax.changefeed_statements import DropSubscription, RetryDeadLetters, SkipDeadLetters
from ..syntax.refusals import unsupported
from ..syntax.relaxed_statements import DropRelaxedLog
from ..syntax.rights_statements import TargetKind
from ..syntax.statements import (
    Delete,
    DropTable,
    Explain,
    ExplainChangefeed,
    Insert,
    InsertMode,
    JobAction,
    Prepare,
    Query,
    Statement,
    Update,
    WithWrites,
)
from ..syntax.type_statements import DropSequence, DropType
from ..syntax.view_statements import DropView
from . import copy, cursors, prepared, transactions
from .admin import (
    connections,
    feeds,
    maintenance,
    replications,
    rights,
    schedules,
    show,
    subscriptions,
    users,
)
from .admin.alter_feed import alter_changefeed
from .admin.dead_letters import dead_letters
from .admin.refused import refusal
from .constant_lists import lists_in
from .cursor import Cursor, LexemeKind, syntax_error
from .ddl import alter, keyspaces, relaxed_logs, sequences, tables, types, views
from .ddl.deferrable import set_constraints
from .ddl.drops import drop_named, drop_objects
from .ddl.table_copies import select_into
from .dml.with_writes import parse_with
from .dml.writes import parse_delete, parse_insert, parse_update
from .explain_options import explain_options
from .lexer import give_way_for, statements, tokenize
from .pieces import SMALL_PIECES
from .queries import parse_query

STATEMENTS_MAX = 10_000
"""Statements in one text: more are a file, and files are loaded."""


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text's statements, and the greatest number of a parameter in them (zero for none)."""

    statements: tuple[Statement, ...]
    parameter_count: int
    brief: bool = False
    """Whether its trees are small, however long the text is: constants make it so."""


def parse(text: str) -> ParsedText:
    """The statements of `text`, in order; none when it holds only blanks and comments.

    >>> parse("COMMIT; ROLLBACK").statements
    (Commit(), Rollback())

    Raises SQLError 42601 (or 0A000 for what is understood and not offered) with the position.
    """
    tokens = tokenize(text)
    give_way_for(tokens)
    groups = statements(tokens)
    if len(groups) > STATEMENTS_MAX:
        raise SQLError("54000", f"more than {STATEMENTS_MAX} statements in one text")
    parsed = tuple(_statement(text, group) for group in groups)
    # What PREPARE holds has parameters of its own.
    own = [
        group
        for group, statement in zip(groups, parsed, strict=True)
        if "$" in text and not isinstance(statement, Prepare)
    ]
    count = max((_greatest_parameter(text, group) for group in own), default=0)
    return ParsedText(parsed, count, brief=len(tokens) <= SMALL_PIECES)


def _greatest_parameter(text: str, tokens: list[Token]) -> int:
    numbers = [
        int(following.text)
        for token, following in pairwise(tokens)
        if token.token_type == TokenType.PARAMETER and following.text.isdecimal()
    ]
    for listed in lists_in(text, tokens).values():
        numbers += listed.parameters
    return max(numbers, default=0)


def _statement(text: str, tokens: list[Token]) -> Statement:
    if tokens[0].token_type == TokenType.WITH:
        return parse_with(text, tokens)
    if tokens[0].token_type in feeds.QUERY_TOKENS:
        return select_into(text, tokens) or parse_query(text, tokens)
    first = text[tokens[0].start : tokens[0].end + 1].lower()
    if first in _TREES:
        return _TREES[first](text, tokens)
    if first == "explain":
        return _explain(text, tokens)
    cursor = Cursor(text, tokens)
    for words, grammar in _GRAMMARS.items():
        if cursor.accept_words(*words):
            statement = grammar(cursor)
            cursor.expect_end()
            return statement
    raise _unknown(cursor)


def _explain(text: str, tokens: list[Token]) -> Explain | ExplainChangefeed:
    if len(tokens) == 1:
        end = tokens[0].end + 1
        raise syntax_error(text, end, end, hint="Expected a statement.")
    words = [token.text.lower() for token in tokens[1:4]]
    if words == ["(", "ddl", ")"] and len(tokens) > 4:
        raise unsupported(
            "EXPLAIN (DDL)",
            tokens[1].start + 1,
            "tailrace_internal.schema_changes tells at which stage a change is.",
        )
    if "changefeed" in words[:2]:
        cursor = Cursor(text, tokens[1:])
        cursor.accept_words("create")
        if cursor.accept_words("changefeed"):
            explained = feeds.explain_changefeed(cursor)
            cursor.expect_end()
            return explained
    analyze, told = explain_options(text, tokens[1:])
    if told == len(tokens) - 1:
        end = tokens[-1].end + 1
        raise syntax_error(text, end, end, hint="Expected a statement.")
    return Explain(analyze=analyze, statement=_explainable(text, tokens[1 + told :]))


def _explainable(text: str, tokens: list[Token]) -> Query | Insert | Update | Delete | WithWrites:
    inner = _statement(text, tokens)
    if not isinstance(inner, Query | Insert | Update | Delete | WithWrites):
        raise syntax_error(
            text,
            tokens[0].start,
            tokens[0].end + 1,
            hint="EXPLAIN takes SELECT, INSERT, UPSERT, UPDATE or DELETE.",
        )
    return inner


def _unknown(cursor: Cursor) -> SQLError:
    refused = refusal(cursor)
    if refused is not None:
        return refused
    first = cursor.advance()
    if first.kind is not LexemeKind.WORD:
        return syntax_error(cursor.text, first.start, first.end, hint="Expected a statement.")
    begun = sorted(" ".join(words) for words in _GRAMMARS if words[0] == first.text)
    if begun:
        found = cursor.current
        hint = f"Statements that begin so: {', '.join(begun).upper()}."
        near = get_close_matches(f"{first.text} {found.text.lower()}", begun, n=1, cutoff=0.8)
        if near:
            hint = f"Did you mean {near[0].upper()}? {hint}"
        return syntax_error(cursor.text, found.start, found.end, hint=hint)
    known = sorted({words[0] for words in _GRAMMARS} | set(_TREES) | {"select", "explain", "with"})
    near = get_close_matches(first.text, known, n=1)
    suggestion = f"Did you mean {near[0].upper()}?" if near else None
    return syntax_error(cursor.text, first.start, first.end, hint=suggestion)


def _insert(text: str, tokens: list[Token]) -> Insert:
    return parse_insert(text, tokens, InsertMode.INSERT)


def _upsert(text: str, tokens: list[Token]) -> Insert:
    return parse_insert(text, tokens, InsertMode.UPSERT)


_TREES: dict[str, Callable[[str, list[Token]], Insert | Update | Delete]] = {
    "insert": _insert,
    "upsert": _upsert,
    "update": parse_update,
    "delete": parse_delete,
}

_GRAMMARS: dict[tuple[str, ...], Callable[[Cursor], Statement]] = {
    ("create", "database"): tables.create_database,
    ("create", "table"): tables.create_table,
    **{
        ("create", *scope, word, "table"): tables.create_temporary_table
        for scope in ((), ("local",), ("global",))
        for word in ("temp", "temporary")
    },
    ("drop", "table"): drop_objects(DropTable, "a table's name"),
    ("alter", "table"): rights.owner_or(TargetKind.TABLE, alter.alter_table),
    ("alter", "schema"): rights.owner_alone(TargetKind.SCHEMA),
    ("alter", "database"): rights.owner_alone(TargetKind.DATABASE),
    ("grant",): partial(rights.grant, revoke=False),
    ("revoke",): partial(rights.grant, revoke=True),
    ("reassign", "owned", "by"): rights.reassign_owned,
    ("drop", "owned", "by"): rights.drop_owned,
    ("alter", "index"): alter.alter_index,
    ("create", "index"): partial(alter.create_index, unique=False),
    ("create", "unique", "index"): partial(alter.create_index, unique=True),
    ("create", "schema"): alter.create_schema,
    ("drop", "index"): alter.drop_index,
    ("drop", "schema"): alter.drop_schema,
    ("drop", "database"): alter.drop_database,
    ("truncate",): alter.truncate,
    ("comment", "on"): alter.comment_on,
    ("create", "type"): types.create_type,
    ("create", "sequence"): sequences.create_sequence,
    ("alter", "sequence"): rights.owner_or(TargetKind.SEQUENCE, sequences.alter_sequence),
    ("drop", "sequence"): drop_objects(DropSequence, "a sequence's name"),
    ("create", "view"): views.create_view,
    ("create", "or", "replace", "view"): views.replace_view,
    ("alter", "view"): views.alter_view,
    ("drop", "view"): drop_objects(DropView, "a view's name"),
    ("alter", "type"): rights.owner_or(TargetKind.TYPE, types.alter_type),
    ("drop", "type"): drop_objects(DropType, "a type's name"),
    ("alter", "changefeed"): alter_changefeed,
    ("create", "relaxed", "log"): relaxed_logs.create_relaxed_log,
    ("drop", "relaxed", "log"): drop_named(DropRelaxedLog, "a relaxed log's name"),
    ("create", "keyspace"): keyspaces.create_keyspace,
    ("drop", "keyspace"): keyspaces.drop_keyspace,
    ("alter", "keyspace"): keyspaces.alter_keyspace,
    ("backup", "keyspace"): keyspaces.backup_keyspace,
    ("restore", "keyspace"): keyspaces.restore_keyspace,
    ("create", "replication"): replications.create_replication,
    ("pause", "replication"): partial(replications.control_replication, action=JobAction.PAUSE),
    ("resume", "replication"): partial(replications.control_replication, action=JobAction.RESUME),
    ("cancel", "replication"): partial(replications.control_replication, action=JobAction.CANCEL),
    ("verify", "replication"): replications.verify_replication,
    ("rebalance", "replication"): replications.rebalance_replication,
    ("create", "changefeed"): feeds.create_changefeed,
    ("create", "schedule"): schedules.create_schedule,
    **{
        (verb, word): partial(schedules.control_schedules, action=action)
        for word in ("schedule", "schedules")
        for verb, action in schedules.SCHEDULE_ACTIONS.items()
    },
    ("create", "subscription"): subscriptions.create_subscription,
    ("drop", "subscription"): drop_named(DropSubscription, "a subscription's name"),
    ("acknowledge", "subscription"): subscriptions.acknowledge_subscription,
    ("create", "external", "connection"): connections.create_connection,
    ("alter", "external", "connection"): connections.alter_connection,
    ("drop", "external", "connection"): connections.drop_connection,
    ("experimental", "changefeed"): feeds.create_changefeed,
    ("cancel",): show.cancel,
    ("verify", "changefeed"): feeds.verify_changefeed,
    ("retry", "dead", "letters"): dead_letters(RetryDeadLetters),
    ("skip", "dead", "letters"): dead_letters(SkipDeadLetters),
    ("pause",): lambda cursor: feeds.control_jobs(cursor, JobAction.PAUSE),
    ("resume",): lambda cursor: feeds.control_jobs(cursor, JobAction.RESUME),
    **{("show", *words): grammar for words, grammar in show.SHOW.items()},
    ("set", "constraints"): set_constraints,
    ("set",): feeds.set_statement,
    ("reset",): feeds.reset_statement,
    ("use",): feeds.use,
    ("begin",): transactions.begin,
    ("start", "transaction"): transactions.begin,
    ("commit",): transactions.commit,
    ("end",): transactions.commit,
    ("rollback",): transactions.rollback,
    ("abort",): transactions.rollback,
    ("savepoint",): transactions.savepoint,
    ("release",): transactions.release,
    ("create", "user"): partial(users.create_user, login=True),
    ("create", "role"): partial(users.create_user, login=False),
    ("alter", "user"): users.alter_user,
    ("alter", "role"): users.alter_user,
    ("drop", "user"): users.drop_user,
    ("drop", "role"): users.drop_user,
    ("copy",): copy.copy,
    ("prepare",): prepared.prepare,
    ("execute",): prepared.execute,
    ("deallocate",): prepared.deallocate,
    ("discard",): prepared.discard,
    ("close", "all"): prepared.close_all,
    ("close",): cursors.close,
    ("declare",): cursors.declare,
    ("fetch",): cursors.fetch,
    ("move",): cursors.move,
    ("unlisten",): prepared.unlisten,
    ("vacuum",): maintenance.vacuum,
    ("analyze",): maintenance.analyze,
    ("analyse",): maintenance.analyze,
    ("lock",): maintenance.lock,
}
