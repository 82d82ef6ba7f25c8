"""The line that every benchmark ends with."""

from __future__ import annotations

import json
from collections.abc import Mapping


def print_outcome(benchmark: str, metrics: Mapping[str, float]) -> None:
    """Prints `{"benchmark": NAME, "metrics": {name: number}}` on one line."""
    rounded = {name: round(value, 4) for name, value in metrics.items()}
    print(json.dumps({"benchmark": benchmark, "metrics": rounded}), flush=True)
