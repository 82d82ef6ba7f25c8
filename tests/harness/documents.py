"""Hypothesis strategies for JSON's values, and for documents that are their normal text."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from tailrace.catalog.values.json_text import write_json

NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=3),
    st.sampled_from(["1", "1.0", "1.00", "10", "0.10", "0.1", "0", "0.0", "-0.5"]).map(Decimal),
)
TEXTS = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=4)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
DOCUMENTS = VALUES.map(write_json)
