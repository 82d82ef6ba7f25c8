"""The crash store: a relaxed store to try the relaxed log with, and its mirror while it runs.

A column table of numpy in shared memory, whose only atom is a cell, is written by many threads of
several processes, one of which is killed. Its log is loaded into a server while it grows, and a
DuckDB mirror follows: every state that the mirror commits is one that the crash store had.
"""
