"""Fuzzers of the three doors: good messages, damaged at places that a seed chooses.

    python -m tests.fuzz wire --state asked --messages 100000 --seed 1

Each is let loose on one door in each state of authentication, beside a feed whose table a good
client goes on writing. The server may answer what it likes, or hang up; it must not fail, stall,
grow, or lose a row of the mirror.
"""
