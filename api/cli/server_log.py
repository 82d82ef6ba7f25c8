"""The log of a server's process: its own start and end, and what the libraries under it say."""

from __future__ import annotations

import logging
import sys
from enum import Enum
from pathlib import Path

from ..refusal import NodeRefused

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"

server_log = logging.getLogger("tailrace")


class LogLevel(Enum):
    """The levels of the server's log: each has the ones below it, too."""

    DEBUG = "debug"  # whatever the libraries have to say
    INFO = "info"  # the server's start and end, and each HTTP request
    WARNING = "warning"  # what a person may want to look at
    ERROR = "error"  # what went wrong


def log_to(path: Path | None, level: LogLevel) -> None:
    """Logs to the end of the file `path`, or to standard error. Raises NodeRefused."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if path is not None:
        try:
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            raise NodeRefused(f"cannot log to {path}: {error.strerror}") from error
    if level is LogLevel.INFO:
        handler.addFilter(_is_of_the_server)
    logging.basicConfig(format=LINE, level=level.name, handlers=[handler])


def _is_of_the_server(record: logging.LogRecord) -> bool:
    """Whether a line is the server's own, or grave: what libraries say beside that is for DEBUG."""
    return record.levelno >= logging.WARNING or record.name.startswith(("tailrace", "uvicorn"))
