"""Regular expressions as PostgreSQL 15 matches them, in time that is linear in the text.

A *pattern* is an "advanced regular expression" (PostgreSQL, section 9.7.3). `reader` makes a tree
of it (`nodes`), whose leaves are sets of letters (`letters`, `alphabets`). Two engines run it:

- `native` writes it in RE2's words for DuckDB's own functions, which take the first of several
  alternatives. Those are asked only whether a text matches, or where `unambiguous` proves that no
  text has two matches to choose from.
- `pattern` searches with RE2 by its leftmost-longest rule, over texts whose letters are replaced by
  their `colours`, with `marks` of what RE2 cannot ask of a place, and then divides what was found
  among the groups by PostgreSQL's rules (`divisions`, `matching`).

It promises PostgreSQL's answer or an SQLError, within bounds of time and memory. Back references,
which no engine of linear time can have, are an error that names the pattern.

It must never know of statements, of sessions or of DuckDB's connections.
"""
