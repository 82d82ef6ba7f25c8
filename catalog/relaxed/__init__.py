"""Relaxed logs as the store knows them: their names and tables, what is pending, how far they are.

A log lives in keyspaces of its own, of the kind `x`, which nobody else writes:

    x | 0 (4)      | name                             the log's id, and the ids of its tables
    x | log id (4) | p | domain (8)                   the position of a domain's reader
    x | log id (4) | e | domain (8) | number (8)      lines that no change set has held yet

A log's id is that of its first table, and ids are never used again.
"""
