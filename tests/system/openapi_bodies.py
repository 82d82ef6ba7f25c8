"""How schemathesis writes the bodies of rows that `POST /v1/tables/{table}/rows` takes.

Loaded by schemathesis itself, which imports what SCHEMATHESIS_HOOKS names: it knows JSON and forms.
"""

from __future__ import annotations

import json
from typing import Any

import schemathesis

LINES, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"


@schemathesis.serializer(LINES, ARROW)
def as_they_are(_context: Any, value: object) -> bytes:
    """Text and bytes as they were made up, and anything else as a line of JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return json.dumps(value, default=str).encode()
