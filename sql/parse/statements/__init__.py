"""The grammar of statements that Tailrace reads itself: each a row, by what it is about."""
