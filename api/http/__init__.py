"""REST: SQL, bulk loads and health over HTTP, by FastAPI.

`create_app(node)` is the whole face. Every error is a problem document (RFC 9457) with the
SQLSTATE, message, detail and hint that any other door would give.
"""

from .app import create_app
from .host_check import is_loopback

__all__ = ["create_app", "is_loopback"]
