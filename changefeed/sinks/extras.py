"""Packages that only some sinks need, each an extra of this one: `pip install 'tailrace[kafka]'`.

To import one takes longer than the loop may wait, and the first time on a machine a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from ...catalog.values.errors import SQLError
from ...kvlayer.process.offload import OffloadLane


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra: its name, the package that it installs, and the module that takes long."""

    name: str
    package: str
    module: str

    async def load(self, lane: OffloadLane) -> None:
        """Imports it beside the loop. Raises SQLError 0A000 where it is not installed."""
        try:
            await lane.run(lambda: import_module(self.module))
        except ImportError:
            raise SQLError(
                "0A000",
                f"the package {self.package} is not installed on this node",
                hint=f"pip install 'tailrace[{self.name}]'",
            ) from None


AVRO = Extra("avro", "fastavro", "fastavro")
DELTA = Extra("delta", "deltalake", "deltalake")
ICEBERG = Extra("iceberg", "pyiceberg", "pyiceberg.catalog.sql")
KAFKA = Extra("kafka", "confluent-kafka", "confluent_kafka.admin")
