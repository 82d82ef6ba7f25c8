"""Regular expressions in PostgreSQL's syntax, run by RE2 in time that is linear in the text.

A *pattern* is an "advanced regular expression" (PostgreSQL, section 9.7.3). `reader` writes it in
RE2's syntax, every class (`classes`) and anchor in full, and says what is wrong with it in
PostgreSQL's words. DuckDB's RE2 runs what it answers as PostgreSQL does; `pattern` and `searches`
run the rest with google-re2, a row at a time.

What RE2 cannot express (back references, lookaround, edges of words) is refused with SQLSTATE
0A000 and a hint.

The package must never know of statements, of sessions or of DuckDB's connections.
"""
