"""A process that writes a log and an engine until it is killed.

    python -m tests.harness.log_writer FOLDER

It recovers first, printing `recovered <index>`, and then `durable <index>` each time the log says
so. Entry n is the number n as text; applied, it puts that key into the engine.
"""

import asyncio
import sys
from pathlib import Path

from tailrace.kvlayer.engine import EngineBatch, EngineStall
from tailrace.kvlayer.engine.rocksdb import RocksEngine
from tailrace.kvlayer.files.data_folder import DataFolder
from tailrace.kvlayer.log import CommandLog
from tailrace.kvlayer.process.offload import Offload, ThreadOffload

SEGMENT_BYTES = 256 * 1024
PADDING = b"." * 300


def payload_of(index: int) -> bytes:
    return b"%d%s" % (index, PADDING)


def apply(engine: RocksEngine, index: int, payload: bytes) -> None:
    batch = EngineBatch(puts=[(b"k%09d" % index, payload)])
    engine.write(batch, applied_index=index)


async def open_log(folder: DataFolder, engine: RocksEngine, offload: Offload) -> CommandLog:
    log = await CommandLog.open(
        folder.disk,
        offload,
        flushed_index=engine.applied_index,
        on_failure=lambda error: None,
        segment_bytes=SEGMENT_BYTES,
    )
    for index, payload in log.replay(engine.applied_index):
        apply(engine, index, payload)
    return log


async def write_until_killed(folder: DataFolder) -> None:
    engine = RocksEngine.open(folder.engine_path)
    offload = ThreadOffload()
    log = await open_log(folder, engine, offload)
    print(f"recovered {log.last_index}", flush=True)
    log.on_durable(lambda index: print(f"durable {index}", flush=True))
    flush_lane = offload.lane("flush")
    while True:
        for _ in range(1 + log.last_index % 7):
            index = log.last_index + 1
            try:
                apply(engine, index, payload_of(index))
            except EngineStall:
                break
            assert log.append(payload_of(index)) == index
        if log.last_index % 5:
            await log.wait_durable(log.last_index)
        else:
            await asyncio.sleep(0)
        if log.last_index % 400 < 7:
            await flush_lane.run(engine.flush)
            await log.truncate(min(engine.flushed_index, log.durable_index))


if __name__ == "__main__":
    asyncio.run(write_until_killed(DataFolder.open(Path(sys.argv[1]))))
