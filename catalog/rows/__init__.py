"""Rows as bytes: keys, bodies and index entries, compiled for each descriptor version.

It promises that writers and feeds read the same bytes alike. It must never know a session.
"""
