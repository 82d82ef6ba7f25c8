"""Repairs of sqlglot's parser: forms of PostgreSQL that it reads otherwise, or not at all.

Tokens are changed before sqlglot reads them, and the tree behind it. A form that sqlglot learns
leaves this folder.
"""
