"""The grammar of INSERT, UPSERT, UPDATE, DELETE and MERGE: sqlglot's trees behind our errors."""
