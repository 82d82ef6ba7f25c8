"""Mutants must go on applying: one that does not proves nothing any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.patches import Mutant, all_mutants

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)
def test_mutant_applies(mutant: Mutant) -> None:
    """If it does not: `tests/mutants/README.md` says how to write it anew."""
    mutant.apply(ROOT, check=True)
    for test in mutant.test.split():
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), test
        assert f"def {name.split('[')[0]}(" in (ROOT / path).read_text() or not name, test
