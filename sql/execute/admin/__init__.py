"""Statements about the system executed: SHOW, grants and users, ranges, feeds and settings.

It promises that each asks for the right that it needs before it tells or does anything.
"""
