"""Whether Spark can run here: its Python package, and a Java that is new enough."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

JAVA_MIN = 17
"""The oldest Java that runs Spark 4."""

ANSWER_SECONDS = 30.0


def why_no_spark() -> str | None:
    """Says in a sentence what is missing and how to get it; None when Spark can run."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'tailrace[spark]'"
    return why_no_java()


def why_no_java() -> str | None:
    """Says in a sentence why the Java that Spark would start is unusable; None when it is not."""
    java = find_java()
    if java is None:
        return f"Java is not installed: Spark needs Java {JAVA_MIN} (openjdk-17-jre-headless)"
    version = java_version(java)
    if version is None:
        return f"{java} does not say its version: Spark needs Java {JAVA_MIN} or newer"
    if version < JAVA_MIN:
        return f"{java} is Java {version}: Spark needs Java {JAVA_MIN} or newer"
    return None


def find_java() -> str | None:
    """The Java that Spark would start: `JAVA_HOME`'s, or the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if java.is_file() else None
    return shutil.which("java")


def java_version(java: str) -> int | None:
    """The major version of the program `java` (1.8 is 8), or None when it says none."""
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    quoted = asked.stderr.split('"')
    if len(quoted) < 3:
        return None
    parts = quoted[1].replace("-", ".").split(".")
    numbers = [int(part) for part in parts[:2] if part.isdecimal()]
    if not numbers:
        return None
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
