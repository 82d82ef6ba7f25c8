"""Sessions: the turns of a client's statements, and what lasts from one to the next.

What lives here: `Session`, its transaction (`session_transactions`), prepared statements and
cursors. It promises that statements of one session run one at a time, in order, and that what a
failed statement did is undone. It must never know how statements arrive, nor how one is executed.
"""
