"""The mutants' patch files: what each breaks, and who is to notice."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent

_FIELDS = ("Promise", "Test", "Caught by")


class MutantError(Exception):
    """A mutant is badly written, no longer applies, or escaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One patch, with its header.

    `promise` is what it breaks, in a sentence; `test` is what pytest is given; `caught_by` is what
    the failure must say: the name of a validator, or of a test.
    """

    name: str
    path: Path
    promise: str
    test: str
    caught_by: str

    @classmethod
    def read(cls, path: Path) -> Mutant:
        """Raises MutantError when the header is not as README.md says."""
        header, _, diff = path.read_text().partition("\ndiff --git ")
        fields = dict(line.split(": ", 1) for line in header.splitlines() if ": " in line)
        missing = [name for name in _FIELDS if not fields.get(name)]
        if missing or not diff:
            raise MutantError(f"{path.name} lacks {', '.join(missing) or 'a diff'}")
        promise, test, caught_by = (fields[name] for name in _FIELDS)
        return cls(name=path.stem, path=path, promise=promise, test=test, caught_by=caught_by)

    def apply(self, tree: Path, *, check: bool = False) -> None:
        """Applies the patch to a tree, or only looks whether it would. Raises MutantError."""
        command = ["git", "apply", *(["--check"] if check else []), str(self.path)]
        ended = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise MutantError(f"it no longer applies: {ended.stderr.strip()}")


def all_mutants() -> list[Mutant]:
    """In order of name. Raises MutantError."""
    return [Mutant.read(path) for path in sorted(FOLDER.glob("*.patch"))]
