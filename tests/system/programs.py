"""The programs that the system tests need: finds them, or installs them where that is possible.

python -m tests.system.programs

As root on Debian what is missing is installed by apt-get. Elsewhere it is named, in one line, and
the exit code is 1: no test is skipped for want of a program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
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
    Program("go", "golang-go"),
    Program("java", "openjdk-17-jre-headless"),
    Program("mvn", "maven"),
    Program("node", "nodejs"),
    Program("npm", "npm"),
    Program("psql", "postgresql-client"),
    Program("initdb", "postgresql", ("/usr/lib/postgresql/*/bin/initdb",)),
    Program("pgbench", "postgresql-contrib", ("/usr/lib/postgresql/*/bin/pgbench",)),
    Program("sqlsmith", "sqlsmith"),
    Program("postgresql.jar", "libpostgresql-jdbc-java", ("/usr/share/java/postgresql.jar",)),
)


NODE_POSTGRES = "pg@8.16.3"
"""The client of Node that is tested, by its exact version."""


def cache_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tailrace-tests"


AZURITE = "azurite@3.35.0"
"""The last emulator of Azure's blobs that runs on Node 20."""


def node_modules() -> Path:
    """The folder with node-postgres, installed by npm when it is first asked for."""
    return _npm(NODE_POSTGRES)


def azurite() -> Path:
    """The program of Azurite's blobs, which `node` runs; installed likewise."""
    return _npm(AZURITE) / "azurite" / "dist" / "src" / "blob" / "main.js"


def _npm(package: str) -> Path:
    """The modules of a package, by its name and exact version."""
    folder = cache_folder() / package.replace("@", "-")
    modules = folder / "node_modules"
    if not (modules / package.partition("@")[0] / "package.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent",
             "--no-save", "--ignore-scripts", package],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return modules


POSTGRES_EXTENSION = ("duckdb==1.5.5", "duckdb-extension-postgres-scanner==1.5.5")
"""The newest wheel of DuckDB's postgres extension, and the DuckDB that it is of: not ours."""


def python_with(name: str, *requirements: str) -> Path:
    """The interpreter of an environment of its own, made by pip when it is first asked for."""
    folder = cache_folder() / "-".join([name, *(each.partition("==")[2] for each in requirements)])
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirements], check=True)
        (folder / "installed").touch()
    return python


SPARK_OF_DELTA = "pyspark==4.2.0"
"""The newest Spark that Delta's own libraries are of: not ours."""

DELTA_LIBRARIES = ("io.delta:delta-spark_2.13:4.4.0", "io.delta:delta-storage:4.4.0")

DUCKDB_EXTENSIONS = (
    "duckdb==1.4.4",
    "duckdb-ext-avro==1.4.4.20260205",
    "duckdb-ext-delta==1.4.4.20260205",
    "duckdb-ext-iceberg==1.4.4.20260205",
)
"""The newest wheels of DuckDB's extensions that read lakes, and the DuckDB that they are of."""


def java(*words: str, program: str | None = None) -> list[str]:
    """The command of a small Java program that is to start soon; `program` is another Java."""
    program = program or shutil.which("java")
    assert program is not None, "python -m tests.system.programs installs java"
    return [program, "-Xmx256m", "-XX:TieredStopAtLevel=1", *words]


def java_libraries(*coordinates: str) -> list[Path]:
    """Libraries of Maven Central, by `group:name:version`, without what they depend on."""
    folder = cache_folder() / "jars"
    found = []
    for each in coordinates:
        _, name, version = each.split(":")
        path = folder / f"{name}-{version}.jar"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _maven("copy", f"-Dartifact={each}", folder=folder)
        found.append(path)
    return found


def jars_with_dependencies(name: str, *coordinates: str) -> Path:
    """The folder with libraries of Maven Central and all that they depend on."""
    folder = cache_folder() / name
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        dependencies = "".join(_DEPENDENCY.format(*each.split(":")) for each in coordinates)
        (folder / "pom.xml").write_text(_POM.format(dependencies))
        _maven("copy-dependencies", folder=folder)
        (folder / "whole").touch()
    return folder


def unpacked_jars(artifact: str) -> Path:
    """The folder with what is in an archive of Maven Central, `group:name:version:kind:class`."""
    _, name, version, *_ = artifact.split(":")
    folder = cache_folder() / f"{name}-{version}"
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _maven("copy", f"-Dartifact={artifact}", folder=folder)
        [archive] = folder.glob("*.tar.gz")
        subprocess.run(["tar", "xzf", archive, "-C", folder], check=True)
        archive.unlink()
        (folder / "whole").touch()
    return folder


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{}</dependencies></project>"""
_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
</dependency>"""


def _maven(goal: str, *words: str, folder: Path) -> None:
    """Has Maven put libraries into a folder."""
    plugin = f"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:{goal}"
    subprocess.run(
        ["mvn", "--quiet", "--batch-mode", plugin, *words, f"-DoutputDirectory={folder}"],
        check=True, stdout=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip


def go_builds_benthos() -> bool:
    """Whether the machine's Go is 1.22 or newer, as its modules ask; Debian's may be older."""
    found = subprocess.run(["go", "version"], capture_output=True, text=True, check=False)
    version = re.search(r"go1\.(\d+)", found.stdout)
    return version is not None and int(version[1]) >= 22


def benthos() -> Path:
    """Benthos with the inputs and outputs that a test needs, built when it is first asked for."""
    source = Path(__file__).parent / "benthos"
    digest = sha256(b"".join(file.read_bytes() for file in sorted(source.iterdir()))).hexdigest()
    program = cache_folder() / f"benthos-{digest[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(".unfinished")
        subprocess.run(["go", "build", "-o", str(unfinished), "."], cwd=source, check=True)
        unfinished.rename(program)
    return program


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
