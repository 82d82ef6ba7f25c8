"""The grammar of statements about the system: users, rights, SHOW, ranges, feeds and settings."""
