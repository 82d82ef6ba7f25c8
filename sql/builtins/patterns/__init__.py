"""Regular expressions in PostgreSQL's syntax, run by RE2 in time that is linear in the text.

A *pattern* is an "advanced regular expression" (PostgreSQL, section 9.7.3). `reader` writes it in
RE2's syntax, every class and anchor in full, and says what is wrong with it in PostgreSQL's words;
`pattern` finds and replaces its matches. What RE2 cannot express (back references, lookaround,
edges of words) is refused with SQLSTATE 0A000 and a hint.

The package must never know of statements, of sessions or of DuckDB's connections.
"""
