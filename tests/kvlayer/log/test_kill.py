"""RocksDB and the log on real files, their process killed with SIGKILL."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.files.data_folder import DataFolder
from tailrace.kvlayer.process.offload import ThreadOffload
from tests.harness.log_writer import open_log, payload_of

ROOT = Path(__file__).parents[3]


def write_and_kill(folder: Path, line_count: int) -> int:
    """Kills the writer when it has said so many lines. The last index it called durable."""
    command = [sys.executable, "-m", "tests.harness.log_writer", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(line_count)]
        writer.kill()
        said += writer.stdout.read().splitlines(keepends=True)
    whole = [int(line.split()[1]) for line in said if line.endswith("\n")]
    return max(whole, default=0)


def check(folder: DataFolder, acknowledged: int) -> None:
    """Everything acknowledged is in the engine once the log is replayed, and nothing is wrong."""

    async def scenario() -> None:
        engine = RocksEngine.open(folder.engine_path)
        offload = ThreadOffload()
        log = await open_log(folder, engine, offload)
        assert log.last_index >= acknowledged
        stored = [value for _, value in engine.scan(b"k", b"l")]
        assert stored == [payload_of(index) for index in range(1, log.last_index + 1)]
        await log.close()
        engine.close()
        offload.close()

    asyncio.run(scenario())


@pytest.mark.system
def test_killed_process_loses_nothing_acknowledged(tmp_path: Path) -> None:
    random = Random(1)
    acknowledged = 0
    for life in range(6):
        said = write_and_kill(tmp_path / "data", 20 + random.randrange(700))
        acknowledged = max(acknowledged, said)
        if life % 2:  # every other time the writer itself recovers
            folder = DataFolder.open(tmp_path / "data")
            check(folder, acknowledged)
            folder.close()
    assert acknowledged > 1000, acknowledged
