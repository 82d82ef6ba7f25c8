"""Kinds of operands by what they are about, and rows of statements of which more is computed than
the grammar in their classes says (`sql.syntax`)."""
