"""The programs that the system tests need: finds them, or installs them where that is possible.

python -m tests.system.programs

As root on Debian what is missing is installed by apt-get. Elsewhere it is named, in one line, and
the exit code is 1: no test is skipped for want of a program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """A program, where it may lie besides the PATH, and the Debian package that brings it."""

    name: str
    package: str
    places: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        if shutil.which(self.name) is not None:
            return True
        return any(list(Path("/").glob(place.lstrip("/"))) for place in self.places)


PROGRAMS = (
    Program("chromium", "chromium"),
    Program("java", "openjdk-17-jre-headless"),
    Program("psql", "postgresql-client"),
    Program("initdb", "postgresql", ("/usr/lib/postgresql/*/bin/initdb",)),
    Program("pgbench", "postgresql-contrib", ("/usr/lib/postgresql/*/bin/pgbench",)),
    Program("postgresql.jar", "libpostgresql-jdbc-java", ("/usr/share/java/postgresql.jar",)),
)


def main() -> int:
    missing = [program for program in PROGRAMS if not program.found]
    if not missing:
        return 0
    packages = [program.package for program in missing]
    if os.geteuid() == 0 and shutil.which("apt-get") is not None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", *packages]):
            subprocess.run(["apt-get", *command], env=environment, check=True)
        missing = [program for program in PROGRAMS if not program.found]
        if not missing:
            return 0
    names = ", ".join(f"{program.name} (Debian: {program.package})" for program in missing)
    print(f"the system tests need {names}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
