"""A process that serves a store has the kernel's settings while it does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tailrace.kvlayer.process.tuned_process import tuned_process


def huge_pages() -> bool:
    fields = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines())
    return fields["THP_enabled"] == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of Linux")
def test_memory_comes_in_small_pages() -> None:
    before = huge_pages()
    with tuned_process():
        assert not huge_pages()
    assert huge_pages() == before
