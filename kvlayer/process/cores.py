"""The processor cores that a process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .control_groups import VERSION_1, control_groups


def usable_cores(root: Path = Path("/")) -> float:
    """Returns how many cores' time this process may use: those that it may run on, or less where a
    control group has a quota (a container of `--cpus 1.5` has 1.5). `root` is where `proc` and
    `sys` are.
    """
    own = (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    least = float(len(own))
    for version, group in control_groups("cpu", root):
        with suppress(OSError):  # the outermost group has no quota
            if version == VERSION_1:
                quota = (group / "cpu.cfs_quota_us").read_text()
                period = (group / "cpu.cfs_period_us").read_text()
            else:
                quota, period = (group / "cpu.max").read_text().split()
            if quota.strip().isdecimal():  # without a quota it is -1, or "max"
                least = min(least, int(quota) / int(period))
    return least
