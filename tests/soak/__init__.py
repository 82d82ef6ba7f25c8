"""A soak: well-behaved clients and feeds for a long time, with and without one of each abuser.

    python -m tests.soak --minutes 30

The server is a process of its own that asks for passwords. Two hundred clients commit and read at a
fifth of the rate that it can take, ten feeds write mirrors of what they commit, and in every second
stretch of time the abusers of `abusers` do their worst beside them.
"""
