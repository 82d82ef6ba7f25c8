"""The resolved timestamp, operation by operation, in text files.

Each block of a file in `testdata` is a command, `----`, and what it printed: whether resolved
moved, and the state. Set TAILRACE_REWRITE=1 to rewrite what is expected, and review the diff.

    new                              begins anew
    scan x@100 y@110                 merges intents of the lock table, one each
    scanned                          the lock table is merged
    close 120                        a closing takes effect
    apply                            one command of the log, an operation a line:
      value 130                          WriteValue
      intent x 100 a b                   WriteIntent
      update x 120                       UpdateIntent
      commit x 120 a b                   CommitIntent
      abort-intent x a                   AbortIntent
      abort-txn x                        AbortTxn
    moved x 150 / aborted x          a push's verdict
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.command import (
    AbortIntent,
    AbortTxn,
    CommitIntent,
    LogicalOp,
    UpdateIntent,
    WriteIntent,
    WriteValue,
)
from tailrace.kvlayer.rangefeed.resolved_timestamp import ResolvedTimestamp

FILES = sorted(Path(__file__).with_name("testdata").glob("*.txt"))
REWRITE = os.environ.get("TAILRACE_REWRITE") == "1"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_resolved_as_the_file_says(file: Path) -> None:
    expected = file.read_text()
    actual = _run(expected)
    if REWRITE:
        file.write_text(actual)
    assert actual == expected


def _run(text: str) -> str:
    resolved = ResolvedTimestamp()
    blocks: list[str] = []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = [line for line in lines if line.startswith("#")]
        asked = [line for line in lines[: lines.index("----")] if not line.startswith("#")]
        if asked[0] == "new":
            resolved = ResolvedTimestamp()
        said = _step(resolved, asked)
        blocks.append("\n".join([*comments, *asked, "----", said]))
    return "\n\n".join(blocks) + "\n"


def _step(resolved: ResolvedTimestamp, asked: list[str]) -> str:
    try:
        moved = _carry_out(resolved, asked)
    except AssertionError:
        return "assertion failed"
    resolved.intents.check_invariants()
    return f"{'moved' if moved else 'stays'} {_state(resolved)}"


def _carry_out(resolved: ResolvedTimestamp, asked: list[str]) -> bool:
    match asked[0].split():
        case ["new"]:
            return False
        case ["scan", *found]:
            pairs = [pair.split("@") for pair in found]
            resolved.scan((name.encode(), Timestamp(int(ts))) for name, ts in pairs)
            return False
        case ["scanned"]:
            return resolved.scanned()
        case ["close", ts]:
            return resolved.close(Timestamp(int(ts)))
        case ["apply"]:
            return resolved.consume([_operation(line.split()) for line in asked[1:]])
        case ["moved", name, ts]:
            return resolved.moved(name.encode(), Timestamp(int(ts)))
        case ["aborted", name]:
            return resolved.aborted(name.encode())
    raise ValueError(asked[0])


def _operation(words: list[str]) -> LogicalOp:
    match words:
        case ["value", ts]:
            return WriteValue(Timestamp(int(ts)), [b"k"], [b"\x00"])
        case ["intent", name, ts, *keys]:
            written = [key.encode() for key in keys]
            return WriteIntent(name.encode(), Timestamp(int(ts)), 1, written, [b"\x00"] * len(keys))
        case ["update", name, ts]:
            return UpdateIntent(name.encode(), Timestamp(int(ts)))
        case ["commit", name, ts, *keys]:
            written = [key.encode() for key in keys]
            return CommitIntent(name.encode(), Timestamp(int(ts)), written, [b"\x00"] * len(keys))
        case ["abort-intent", name, *keys]:
            return AbortIntent(name.encode(), [key.encode() for key in keys])
        case ["abort-txn", name]:
            return AbortTxn(name.encode())
    raise ValueError(words)


def _state(resolved: ResolvedTimestamp) -> str:
    held = [
        f"{name.decode()}@{known.timestamp}x{known.intent_count}"
        for name, known in sorted(resolved.intents.transactions())
    ]
    return f"resolved={resolved.resolved} closed={resolved.closed} {' '.join(held)}".rstrip()
