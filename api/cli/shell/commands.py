"""Backslash commands: short words for statements, and for how results are shown."""

from __future__ import annotations

from ....catalog.descriptors.names import quote_identifier

_INDEXES = (
    "SELECT pg_get_indexdef(indexrelid) AS index_definition FROM pg_index "
    "WHERE indrelid = {1}::regclass ORDER BY 1"
)
_CONSTRAINTS = (
    "SELECT conname AS constraint_name, pg_get_constraintdef(oid) AS definition "
    "FROM pg_constraint WHERE conrelid = {1}::regclass ORDER BY 1"
)
_GRANTS = (
    "SELECT full_name, kind, grantee, privilege, grantable FROM tailrace_internal.grants "
    "{where} ORDER BY 1, 2, 3, 4"
)
STATEMENTS = {
    "dt": ("SHOW TABLES",),
    "l": ("SHOW DATABASES",),
    "dn": (
        "SELECT nspname AS schema_name, pg_get_userbyid(nspowner) AS owner FROM pg_namespace "
        "ORDER BY 1",
    ),
    "du": (
        "SELECT rolname AS role, rolcanlogin AS login, rolsuper AS admin, ARRAY("
        "SELECT b.rolname FROM pg_auth_members AS m JOIN pg_roles AS b ON b.oid = m.roleid "
        "WHERE m.member = r.oid) AS member_of FROM pg_roles AS r ORDER BY 1",
    ),
    "dp": (_GRANTS.format(where="WHERE object_id > 0"),),
    "jobs": ("SHOW JOBS",),
    "feeds": ("SHOW CHANGEFEED JOBS",),
    "sessions": (
        "SELECT pid, state, usename, datname, client_addr, application_name, query "
        "FROM pg_stat_activity ORDER BY backend_start, pid",
    ),
}
OF_TABLES = {
    "d": ("SHOW COLUMNS FROM {0}", _INDEXES, _CONSTRAINTS),
    "di": (_INDEXES,),
    "dp": (_GRANTS.format(where="WHERE object_id = {1}::regclass"),),
    "sf": ("SHOW CREATE TABLE {0}",),
}

HELP = """\
\\d [TABLE]      tables; or a table's columns, indexes and constraints
\\dt \\l \\dn \\du  tables, databases, schemas, roles
\\di TABLE       a table's indexes          \\sf TABLE   the statement that makes it
\\dp [TABLE]     grants
\\jobs \\feeds \\sessions
\\c DATABASE     another database
\\x              records instead of tables, and back
\\format NAME    table, records, csv, tsv, json or ndjson
\\timing         whether to say how long statements took
\\i FILE         run a file
\\conninfo  \\?  \\q
"""


def statements_of(command: str, argument: str) -> tuple[str, ...] | None:
    """The statements that a command stands for; None where it is none of these, or takes no
    argument and has one."""
    if argument and command in OF_TABLES:
        parts = argument.rstrip(";").split(".")
        name = ".".join(part if '"' in part else quote_identifier(part) for part in parts)
        quoted = "'" + name.replace("'", "''") + "'"
        return tuple(text.format(name, quoted) for text in OF_TABLES[command])
    return None if argument.strip(";") else STATEMENTS.get("dt" if command == "d" else command)
