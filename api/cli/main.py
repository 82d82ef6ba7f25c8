"""The entry point."""

from __future__ import annotations

import os
import sys

from ...error import Error

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# What gRPC's library writes to standard error by itself names nothing that an operator knows.


def main() -> None:
    """Runs the command line of the process. Ctrl-C ends it without a traceback, also while it is
    still being loaded."""
    try:
        from .app import app

        app()
    except Error as error:
        print(f"tailrace: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
