"""Raw keyspaces: CREATE and DROP."""
