"""The pages' files, and what a browser may do with them."""

from __future__ import annotations

from pathlib import Path

from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

STATIC = Path(__file__).with_name("static")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing inline, nothing from another host, and nobody's frame."""

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for anew, and seldom sent again
}

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_FILES = {
    file.relative_to(STATIC).as_posix(): file
    for file in STATIC.rglob("*")
    if file.suffix in _MEDIA_TYPES
}
"""Every file that is served, by its path: what a request names is looked up, never opened."""


def asset(path: str, *, status: int = 200) -> FileResponse:
    """One of the files under `static/`. Raises HTTPException 404."""
    file = _FILES.get(path)
    if file is None:
        raise HTTPException(404)
    return FileResponse(
        file, status_code=status, media_type=_MEDIA_TYPES[file.suffix], headers=HEADERS
    )
