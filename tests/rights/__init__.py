"""Who may do what: the table of `docs/rights.md`, tried as nobody, as granted, owner and admin."""
