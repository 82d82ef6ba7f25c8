"""A Java that is none: a program that answers `-version`."""

from __future__ import annotations

from pathlib import Path


def fake_java(folder: Path, says: str) -> Path:
    """A JAVA_HOME whose java says that it is such a version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return folder
