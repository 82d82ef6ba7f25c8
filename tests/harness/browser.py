"""Debian's Chromium under Playwright, which reports whatever a page does wrong.

with Browser(server.url) as browser:
    page = browser.open("/compare")
    ...
    browser.check()     # no console error, no request to another host
"""

from __future__ import annotations

import shutil
from types import TracebackType

from playwright.sync_api import ConsoleMessage, Page, Request, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """One headless browser, and what its pages complained of."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.complaints: list[str] = []
        program = shutil.which("chromium")
        assert program is not None, "install Debian's chromium: apt-get install chromium"
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=program, args=list(FLAGS))

    def open(
        self,
        path: str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        user: tuple[str, str] | None = None,
    ) -> Page:
        """A page of its own; `user` is a name and the password that the browser is asked for."""
        page = self._browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            http_credentials=None if user is None else {"username": user[0], "password": user[1]},
        )
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("request", self._request)
        page.goto(self._url + path)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._url, "data:")):
            self.complaints.append(f"a request to {request.url}")

    def check(self) -> None:
        assert not self.complaints, self.complaints

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._browser.close()
        self._playwright.stop()
