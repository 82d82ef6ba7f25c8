"""Online schema changes: a table is changed while it is read, written and followed.

A schema change is a set of *targets*: an element of the table (a column, an index, a constraint,
facts such as a name) and where it is to be, public or absent. The *planner* turns targets into
*stages* by rules: a version of the descriptor, or work that needs no version (a backfill, a
validation, the removal of what nobody reads). The *job* carries the stages out one by one.

It promises that every published version is compatible with its neighbours; that each waits until
only one version is in use; that a crash at any moment loses no stage and repeats none; that
whatever may fail comes before whatever cannot be taken back, so that a change that fails or is
canceled leaves the table as it was; that the lock of a locked table is cleared and set by versions
of their own; and that no step holds the loop for more than a millisecond.

It must never know SQL: expressions are texts, evaluated by whoever implements `RowEvaluator`.
"""
