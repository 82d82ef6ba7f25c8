"""The functions that a text may call by name: those of the registries, and no other of DuckDB's.

What has no entry in a registry would go to DuckDB by its name, and DuckDB has functions that write
its log, tell its settings and statistics, or hold a thread. A call that is no node of sqlglot's own
is looked up here:

    lower(x)                a node of sqlglot's: each computes a value
    postgres_substr(x, 1)   a macro of ours, as the passes before have named it
    jsonb_set(x, …)         documents say themselves which there are
    getvariable('x')        42883: function getvariable does not exist
    jsonb_path_query(…)     0A000 with a hint: PostgreSQL has the function, and no named client asks
"""

from __future__ import annotations

from sqlglot import exp

from ..builtins.known_functions import ELSEWHERE, FUNCTIONS
from ..builtins.macros import PREFIX
from ..builtins.session_functions import SESSION_FUNCTIONS
from ..syntax.trees import error_at, find_all, unsupported
from .expansions.catalog_functions import CATALOG_CALLS

_PREFIXES = (PREFIX, "json_", "jsonb_")

_OTHERS = frozenset(
    """
    current_user session_user setseed unique_rowid txid_current
    to_json to_jsonb array_to_json row_to_json

    pg_sleep inet_server_addr inet_server_port inet_client_addr inet_client_port
    pg_postmaster_start_time pg_conf_load_time pg_my_temp_schema pg_is_other_temp_schema
    has_function_privilege has_tablespace_privilege has_language_privilege has_server_privilege

    row error numeric _pg_expandarray len
    """.split()  # noqa: SIM905 (a list of words is read as such)
)
"""Functions without a signature; and, in the last line, names that other passes make or look
for."""
_KNOWN = _OTHERS | set(FUNCTIONS) | set(ELSEWHERE) | set(SESSION_FUNCTIONS) | set(CATALOG_CALLS)

_IN_PATHS = "-> and #> lead into a document, jsonb_array_elements and jsonb_each list what it has."
_BY_OPERATORS = (
    "?, ?|, ?&, @>, <@, ||, - and #- do the same; JDBC writes ?? for the sign of an operator."
)
_BY_PATTERN = (
    "'2021-03-05'::DATE and '2021-03-05 14:07'::TIMESTAMP read a text, which || makes of parts."
)
_BY_EXPRESSION = (
    "s ~ 'p' tells whether a text matches; replace(), translate() and split_part() take it apart."
)
_BY_ARITHMETIC = "It is an expression of the operators and of floor(), mod() and power()."
_BY_UNNEST = (
    "unnest(a) WITH ORDINALITY gives elements and places, array_agg() makes an array of them."
)
_BY_PLACE = (
    "GROUP BY x ORDER BY count(*) DESC LIMIT 1 is the most frequent value, row_number() and "
    "count(*) OVER () tell a row's place; a mirror has DuckDB's percentiles."
)
_DIGEST = "sha256() and md5() are the digests that there are."
_REFUSED = {
    **dict.fromkeys(
        ("jsonb_path_exists", "jsonb_path_match", "jsonb_path_query", "jsonb_path_query_array",
         "jsonb_path_query_first"),
        _IN_PATHS,
    ),
    **dict.fromkeys(
        ("to_date", "make_date", "make_time", "make_timestamp", "make_timestamptz"), _BY_PATTERN
    ),
    **dict.fromkeys(
        ("jsonb_exists", "jsonb_exists_any", "jsonb_exists_all", "jsonb_contained", "jsonb_concat",
         "jsonb_delete", "jsonb_delete_path"),
        _BY_OPERATORS,
    ),
    **dict.fromkeys(
        ("jsonb_each", "jsonb_each_text", "jsonb_object_keys"),
        "doc ->> 'name' is a member; names that a query looks for are items of an array, or rows.",
    ),
    "jsonb_insert": "jsonb_set() sets a member, || appends to an array.",
    "jsonb_set_lax": "jsonb_set() sets a member, #- removes it.",
    "jsonb_object": "jsonb_build_object() takes names and values by turns.",
    **dict.fromkeys(
        ("jsonb_to_record", "jsonb_to_recordset"),
        "(doc ->> 'a')::INT8 is a member with a type, jsonb_array_elements() a row for each item.",
    ),
    **dict.fromkeys(("hashtext", "hashtextextended"), "Advisory locks take any number."),
    **dict.fromkeys(
        ("pg_advisory_lock_shared", "pg_try_advisory_lock_shared", "pg_advisory_unlock_shared",
         "pg_advisory_xact_lock_shared", "pg_try_advisory_xact_lock_shared"),
        "pg_advisory_lock(n) and pg_advisory_xact_lock(n) exclude all others.",
    ),
    **dict.fromkeys(("sha224", "sha384", "sha512"), _DIGEST),
    **dict.fromkeys(("factorial", "cbrt", "gcd", "lcm", "width_bucket"), _BY_ARITHMETIC),
    **dict.fromkeys(
        ("array_positions", "array_fill", "array_dims", "array_ndims", "trim_array"), _BY_UNNEST
    ),
    **dict.fromkeys(("num_nulls", "num_nonnulls"), "(a IS NULL)::INT8 + (b IS NULL)::INT8 counts."),
    "pg_has_role": "pg_auth_members lists who is a member of which role.",
    "values": "INSERT INTO t VALUES (…) has no parentheses around VALUES.",
    "div": "trunc(a / b) is the whole part of a quotient.",
    "date_bin": "date_trunc() cuts a moment to its unit.",
    **dict.fromkeys(("jsonb_pretty", "jsonb_strip_nulls"), "Clients write documents."),
    "lastval": "RETURNING tells what a statement has written, currval('s') names the sequence.",
    "scale": "The digits of a column are those of its type.",
    **dict.fromkeys(("min_scale", "trim_scale"), "round(x, 2)::TEXT has as many digits as that."),
    **dict.fromkeys(
        ("regexp_like", "regexp_count", "regexp_instr", "regexp_substr", "regexp_match",
         "regexp_matches", "regexp_replace", "regexp_split_to_array", "regexp_split_to_table"),
        _BY_EXPRESSION,
    ),
}  # fmt: skip
"""PostgreSQL's functions that are not offered: what does the same."""

REFUSED_NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.JSONBContains: ("jsonb_contains()", _BY_OPERATORS),
    exp.JSONBPathExists: ("the operator @?", _IN_PATHS),
    exp.MatchAgainst: ("the operator @@", f"{_IN_PATHS} LIKE and ~ search texts."),
    exp.Interval: (
        "fields of an interval behind its text",
        "INTERVAL '1 year 2 mons' and '1 day 02:00' say them within; extract() takes a field.",
    ),
    exp.MakeInterval: ("make_interval()", "n * INTERVAL '1 day' is an interval of n days."),
    **dict.fromkeys(
        (exp.JustifyDays, exp.JustifyHours, exp.JustifyInterval),
        ("justify_days()", "extract(epoch FROM x) makes one number of an interval."),
    ),
    **dict.fromkeys(
        (exp.WithinGroup, exp.Mode, exp.PercentileCont, exp.PercentileDisc),
        ("aggregates WITHIN GROUP", _BY_PLACE),
    ),
    exp.IgnoreNulls: ("IGNORE NULLS", "FILTER and WHERE leave rows out."),
    **dict.fromkeys(
        (exp.JSONBObjectAgg, exp.JSONObjectAgg),
        ("jsonb_object_agg()", "jsonb_agg(jsonb_build_object(name, value)) gathers what is named."),
    ),
    exp.JSONStripNulls: ("jsonb_strip_nulls()", "Clients write documents."),
    exp.Overlaps: ("OVERLAPS", "Compare the ends: start_a < end_b AND start_b < end_a."),
    exp.Time: ("time()", "x::TIME is the cast."),
    exp.SimilarTo: ("SIMILAR TO", "s ~ '^(a|b)$' and LIKE compare a text with a pattern."),
}
"""Nodes of sqlglot's that are refused: the error's name for each, and its hint."""


def known_calls(tree: exp.Expr) -> exp.Expr:
    """The tree itself. Raises SQLError 0A000 for a node of `REFUSED_NODES` and for a call of a
    function that is not offered, and 42883 for a call of what is in no registry."""
    for node in find_all(tree, exp.Anonymous, *REFUSED_NODES):
        if type(node) in REFUSED_NODES:
            what, refused = REFUSED_NODES[type(node)]
            raise unsupported(what, node, refused)
        name = node.name.lower()
        plain = name.removeprefix(PREFIX)
        hint = _REFUSED.get(f"jsonb{plain[4:]}" if plain.startswith("json_") else plain)
        if name == f"{PREFIX}to_timestamp" and len(node.expressions) == 2:
            hint = _BY_PATTERN
        if hint is not None:
            raise unsupported(f"{plain}()", node, hint)
        if name not in _KNOWN and not name.startswith(_PREFIXES):
            raise error_at(node, "42883", f"function {name} does not exist")
    return tree
