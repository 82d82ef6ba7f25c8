"""Access paths: rows by primary key, by index and by range of keys.

What lives here: which keys answer predicates, and the choice among indexes. It promises that a
path reads every row that its predicate accepts. It must never read one.
"""
