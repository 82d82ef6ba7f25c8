"""Applications of Spark, as their server hears them. No Java is started."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tailrace.changefeed.sinks.protocol import SinkRefused
from tailrace.changefeed.sinks.spark.application import SparkApplication
from tailrace.kvlayer.clock import Timestamp

LONG_LINES = """
import sys
for stream in (sys.stdout, sys.stderr):
    print("x" * 200_000, file=stream)
print('{"resolved": 7, "rows": 3}')
sys.exit("tailrace: the table was dropped")
"""


def test_long_lines_of_an_application_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long_lines.py").write_text(LONG_LINES)
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    noted: list[tuple[Timestamp, int]] = []

    async def note(resolved: Timestamp, rows: int) -> None:
        noted.append((resolved, rows))

    application = SparkApplication("long_lines", [], {}, "token", note)
    assert asyncio.run(application.run()) == 1
    assert noted == [(7, 3)]
    with pytest.raises(SinkRefused, match=r"^the table was dropped$"):
        application.check(4)
