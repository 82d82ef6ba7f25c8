"""Session variables: their names, values and defaults, as SET and SHOW know them."""
