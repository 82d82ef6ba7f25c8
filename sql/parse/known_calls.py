"""Which functions a text may call by name: those of the registries, and no other of DuckDB's.

What has no entry in a registry would go to DuckDB by its name, and DuckDB has functions that write
its log, tell its settings and statistics, or hold a thread. A call that is no node of sqlglot's own
is looked up here:

    lower(x)                a node of sqlglot's: each computes a value
    postgres_substr(x, 1)   a macro of ours, as the passes before have named it
    jsonb_set(x, …)         documents say themselves which there are
    getvariable('x')        42883: function getvariable does not exist
"""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ..builtins.known_functions import FUNCTIONS
from ..builtins.macros import PREFIX
from ..syntax.tree_names import position_of
from ..syntax.walks import find_all
from .expansions.catalog_functions import CATALOG_CALLS

_PREFIXES = (PREFIX, "json_", "jsonb_")

_OTHERS = frozenset(
    """
    nextval currval setval lastval current_setting set_config

    pg_cancel_backend pg_terminate_backend pg_advisory_lock pg_advisory_lock_shared
    pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_try_advisory_lock
    pg_try_advisory_lock_shared pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared
    pg_advisory_unlock pg_advisory_unlock_shared pg_advisory_unlock_all wait_for_changefeed
    raw_get raw_put raw_delete raw_delete_range raw_cas

    cluster_logical_timestamp pg_backend_pid statement_timestamp clock_timestamp
    transaction_timestamp version
    current_database current_schema current_user session_user

    to_json to_jsonb row_to_json array_to_json

    now count array_agg generate_series gen_random_uuid random setseed unique_rowid txid_current
    row_number rank dense_rank percent_rank cume_dist lag lead first_value last_value nth_value

    pg_sleep inet_server_addr inet_server_port inet_client_addr inet_client_port
    pg_postmaster_start_time pg_conf_load_time pg_my_temp_schema pg_is_other_temp_schema
    has_function_privilege has_tablespace_privilege has_language_privilege has_server_privilege

    row len error numeric _pg_expandarray
    """.split()  # noqa: SIM905 (a list of words is read as such)
)
"""Those whose registries stand above the parser; those of PostgreSQL's that DuckDB has under the
same name; and, in the last line, what other passes make or look for."""


def known_calls(tree: exp.Expr) -> exp.Expr:
    """The tree itself. Raises SQLError 42883 for a call of what is in no registry."""
    for node in find_all(tree, exp.Anonymous):
        name = node.name.lower()
        known = name in FUNCTIONS or name in _OTHERS or name in CATALOG_CALLS
        if not known and not name.startswith(_PREFIXES):
            raise SQLError("42883", f"function {name} does not exist", position=position_of(node))
    return tree
