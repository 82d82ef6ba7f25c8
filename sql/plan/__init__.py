"""Plans: from a bound statement to what is read, computed and written.

What lives here: the planner, the plans it makes (`plans`), and the parts of DML: conflicts, locks
and RETURNING. It promises that a plan holds no live object, so that it can be kept. It must
never read a row.
"""
