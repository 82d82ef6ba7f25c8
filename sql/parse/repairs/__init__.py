"""What PostgreSQL's grammar has and sqlglot's parser reads otherwise, or not at all.

Each module here is one such form: it changes tokens before sqlglot reads them, or the tree behind
it. A form that sqlglot learns leaves this folder.
"""
