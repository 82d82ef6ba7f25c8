"""Makes the README's pictures: both pages, light and dark, wide and narrow.

python -m tests.system.screenshots [--folder docs/pictures] [--seconds 60]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.harness.browser import Browser
from tests.harness.server_process import ServerProcess

SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
PAGES = {"overview": "/", "compare": "/compare"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of workload before them")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-pictures-") as folder,
        ServerProcess(Path(folder) / "data") as server,
        Browser(server.url) as browser,
    ):
        make_orders(server)
        shots = [
            (
                name,
                size,
                theme,
                browser.open(path, width=width, height=height, dark=theme == "dark"),
            )
            for name, path in PAGES.items()
            for size, (width, height) in SIZES.items()
            for theme in ("light", "dark")
        ]
        play(browser.open("/compare"), arguments.seconds)
        for name, size, theme, page in shots:
            expect(page.locator("#connection")).to_have_text("live")
            file = arguments.folder / f"{name}-{size}-{theme}.png"
            page.screenshot(path=file)
            print(file)
        browser.check()


def make_orders(server: ServerProcess) -> None:
    """A table and its mirror, so that the overview has more to show than the comparison."""
    server.sql(
        "CREATE TABLE orders (id INT8 PRIMARY KEY, customer STRING, amount DECIMAL)"
        " WITH (changefeed_optimized = true)"
    )
    server.sql("CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///orders.duckdb'")
    server.sql("INSERT INTO orders VALUES (1, 'Ada', 12.50), (2, 'Grace', 7.25)")


def play(page: Page, seconds: float) -> None:
    """Starts the workload and holds a transaction open for a while in the middle."""
    page.get_by_role("button", name="Start the workload").click()
    page.wait_for_timeout(seconds * 500)
    page.get_by_role("button", name="Open a long transaction").click()
    page.wait_for_timeout(5_000)
    page.get_by_role("button", name="Close the long transaction").click()
    page.wait_for_timeout(seconds * 500)
    page.close()


if __name__ == "__main__":
    main()
