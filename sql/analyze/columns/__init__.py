"""The columns of statements: what stars stand for, what columns are called and come from."""
