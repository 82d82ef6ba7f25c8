"""The grammar of schemas: tables, indexes, constraints, types, views and sequences."""
