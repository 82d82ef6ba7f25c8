"""The grammar of INSERT, UPSERT, UPDATE and DELETE: sqlglot's trees behind our errors."""
