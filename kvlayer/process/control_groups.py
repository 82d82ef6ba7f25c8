"""The control groups of a process, whose limits hold for it whatever the machine has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

VERSION_1, VERSION_2 = "cgroup", "cgroup2"
"""The versions of control groups, by the types of their file systems."""


def control_groups(controller: str, root: Path) -> Iterator[tuple[str, Path]]:
    """The folders of this process's control groups that have `controller` (`memory`, `cpu`) and of
    those around them, each with its version. `root` is where `proc` and `sys` are. None on other
    systems than Linux.
    """
    with suppress(OSError):
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            version = VERSION_1 if controllers else VERSION_2
            for fields in map(str.split, mounts):
                found, _, options = fields[fields.index("-") + 1 :][:3]
                if found == version and (found == VERSION_2 or controller in options.split(",")):
                    top = root / fields[4].lstrip("/")
                    for group in _groups(top, PurePosixPath(path), mounted=fields[3]):
                        yield version, group


def _groups(top: Path, path: PurePosixPath, *, mounted: str) -> Iterator[Path]:
    """The folder of a control group, and of those around it, where the group `mounted` is at `top`.
    A container's process may be told a path of the machine, of which it sees its own part alone."""
    group = top / path.relative_to(mounted) if path.is_relative_to(mounted) else top
    while group != top:
        yield group
        group = group.parent
    yield top
