"""Benchmarks: ratios within one run, each ending in one line of JSON.

`python -m benchmarks` runs them all; `python -m benchmarks.NAME --help` tells of one.
"""
