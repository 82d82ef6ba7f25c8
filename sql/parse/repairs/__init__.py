"""Repairs of sqlglot's parser: forms of PostgreSQL that it reads otherwise, or not at all.

Each module here is one such form: it changes tokens before sqlglot reads them, or the tree behind
it. A form that sqlglot learns leaves this folder.
"""
