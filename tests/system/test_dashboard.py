"""The dashboard in a real browser, on a real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import Browser
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

PATIENCE_MS = 40_000

FIGURE = """([subject, name]) => {
    const shown = document.querySelector(
        `.card[data-subject="${subject}"] [data-value="${name}"]`);
    return shown.dataset.ms === "" ? null : Number(shown.dataset.ms);
}"""


def figure(page: Page, subject: str, name: str) -> float | None:
    found: float | None = page.evaluate(FIGURE, [subject, name])
    return found


def wait_for(page: Page, condition: str) -> None:
    """`condition` is JavaScript over ms(subject, name)."""
    page.wait_for_function(
        f"() => {{ const figure = {FIGURE}; const ms = (s, n) => figure([s, n]);"
        f" return {condition}; }}",
        timeout=PATIENCE_MS,
    )


def mark(page: Page, label: str) -> None:
    expect(page.locator("#marks strong", has_text=label).first).to_be_visible(timeout=PATIENCE_MS)


def test_the_comparison_shows_what_a_row_waits_for(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, Browser(server.url) as browser:
        page = browser.open("/compare")
        page.get_by_role("button", name="Start the workload").click()
        mark(page, "workload starts")
        # Both have measured for a while, and lie far apart.
        wait_for(page, "ms('polling', 'p50') > 50 * ms('leasing', 'p50') && ms('leasing', 'p50')")
        wait_for(page, "ms('rangefeed', 'p50') > 0")
        before = figure(page, "rangefeed", "p99")
        assert before is not None

        page.get_by_role("button", name="Open a long transaction").click()
        mark(page, "long transaction begins")
        wait_for(page, f"ms('rangefeed', 'p99') > {max(1000.0, 3 * before)}")
        leasing = figure(page, "leasing", "p50")
        assert leasing is not None
        assert leasing < 50
        page.get_by_role("button", name="Close the long transaction").click()
        mark(page, "long transaction ends")

        page.get_by_role("button", name="Unlock the tables").click()
        mark(page, "unlock")
        page.get_by_role("button", name="Lock the tables").click()
        expect(page.get_by_role("button", name="Unlock the tables")).to_be_enabled()
        assert "changefeed_optimized = false" in page.locator("#marks").inner_text()

        page.get_by_role("button", name="Stop the workload").click()
        mark(page, "workload stops")
        browser.check()


def test_the_chart_has_the_room_that_its_legend_leaves(tmp_path: Path) -> None:
    """Whenever the legend gets its height: its styles and fonts may come behind the chart."""
    with ServerProcess(tmp_path / "data") as server, Browser(server.url) as browser:
        page = browser.open("/compare")
        expect(page.locator("#connection")).to_have_text("live")
        canvas = page.locator(".uplot canvas")
        page.evaluate(
            "() => { const tall = new CSSStyleSheet(); document.adoptedStyleSheets = [tall];"
            " tall.replaceSync('.u-legend { height: 300px }'); }"
        )
        expect(canvas).to_have_css(
            "height", re.compile(r"^1?\d?\d(\.\d+)?px$"), timeout=PATIENCE_MS
        )
        page.evaluate("() => { document.adoptedStyleSheets = []; }")
        expect(canvas).to_have_css(
            "height", re.compile(r"^[3-9]\d\d(\.\d+)?px$"), timeout=PATIENCE_MS
        )
        browser.check()


def test_the_overview_shows_feeds_and_outlives_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "--salvage") as server, Browser(server.url) as browser:
        page = browser.open("/", width=390, height=844, dark=True)
        expect(page.locator("#empty")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("is open with --salvage")
        server.sql('CREATE TABLE "<img src=x>\'" (id INT8 PRIMARY KEY)')
        server.sql("CREATE CHANGEFEED FOR TABLE \"<img src=x>'\" INTO 'duckdb:///m.duckdb'")
        expect(page.locator("#feeds tr")).to_have_count(1, timeout=PATIENCE_MS)
        tables = page.locator("#feeds td[data-label=Tables]")
        expect(tables.first).to_contain_text("<img src=x>'")
        assert page.locator("#feeds img").count() == 0
        for width in (390, 641, 900, 1200, 1201):
            page.set_viewport_size({"width": width, "height": 844})
            wraps = "document.querySelectorAll('html, .table-wrap')"
            assert page.evaluate(f"[...{wraps}].every(e => e.scrollWidth <= e.clientWidth)"), width
        browser.check()

        server.kill()
        expect(page.locator("#connection")).to_have_text("server away, trying again…")
        server.start(port=server.port)
        expect(page.locator("#connection")).to_have_text("live", timeout=PATIENCE_MS)
        expect(page.locator("#feeds tr")).to_have_count(1)


def test_who_may_not_see_the_feeds_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILRACE_ROOT_PASSWORD", "secret")
    with (
        ServerProcess(tmp_path / "data", insecure=False) as server,
        Browser(server.url) as browser,
    ):
        server.client.auth = ("root", "secret")
        server.sql("CREATE USER ada PASSWORD 'x'")
        page = browser.open("/", user=("ada", "x"))
        connection = page.locator("#connection")
        told = "user ada does not have VIEWJOB system privilege: reload the page to try again"
        expect(connection).to_have_text(told, timeout=PATIENCE_MS)
        server.sql("GRANT SYSTEM VIEWJOB TO ada")
        page.reload()
        expect(connection).to_have_text("live", timeout=PATIENCE_MS)
        server.sql("REVOKE SYSTEM VIEWJOB FROM ada")
        expect(connection).to_have_text(told, timeout=PATIENCE_MS)
        page.goto(f"{server.url}/compare")
        expect(connection).to_contain_text("for users with the admin role", timeout=PATIENCE_MS)


def test_feeds_are_found_sorted_and_paged(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, Browser(server.url) as browser:
        server.sql(
            "CREATE TABLE orders (id INT8 PRIMARY KEY); CREATE TABLE lines (id INT8 PRIMARY KEY)"
        )
        jobs = [
            server.rows(f"CREATE CHANGEFEED FOR TABLE {table} INTO 'duckdb:///{mirror}.duckdb'")[0][
                0
            ]
            for table, mirror in (("orders", "m1"), ("lines", "m2"), ("orders", "m3"))
        ]
        server.sql(f"CANCEL JOB {jobs[2]}")
        page = browser.open("/")
        rows = page.locator("#feeds tr")
        expect(rows).to_have_count(2, timeout=PATIENCE_MS)
        expect(page.locator("#ended-label")).to_have_text("Ended feeds (1)", timeout=PATIENCE_MS)
        sink = page.locator("#feeds td[data-label=Sink]").first.bounding_box()
        assert sink is not None and sink["width"] > 150
        page.get_by_role("button", name="Tables").click()
        expect(rows.first).to_contain_text("lines")
        page.get_by_role("button", name="Tables").click()
        expect(rows.first).to_contain_text("orders")
        page.locator("#find").fill(f"{jobs[1]}")
        expect(rows).to_have_count(1)
        page.locator("#find").fill("")
        page.locator("#ended").check()
        expect(rows).to_have_count(3)
        page.locator("#find").fill("nothing")
        expect(page.locator("#none")).to_be_visible()
        expect(page.locator("#feeds-panel")).to_be_hidden()
        browser.check()


def test_a_failed_feed_is_shown_and_a_long_list_of_tables_is_cut(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, Browser(server.url) as browser:
        names = [f"t{place}" for place in range(30)]
        server.sql(";".join(f"CREATE TABLE {name} (id INT8 PRIMARY KEY)" for name in names))
        server.sql(f"CREATE CHANGEFEED FOR {', '.join(names)} INTO 'null://'")
        server.sql("CREATE TABLE gone (id INT8 PRIMARY KEY)")
        [[failed]] = server.rows("CREATE CHANGEFEED FOR gone INTO 'null://'")
        server.sql(f"SELECT wait_for_changefeed({failed})")
        server.sql("DROP TABLE gone")
        page = browser.open("/", width=390, height=844)
        badge = page.locator(f"#feed-{failed} .badge")
        expect(badge).to_have_text("failed", timeout=PATIENCE_MS)
        expect(page.locator("#feeds tr").first).to_have_id(f"feed-{failed}")
        cut = page.locator(".names[tabindex]")
        expect(cut).to_contain_text("t29")
        height = "element => element.clientHeight"
        before = cut.evaluate(height)
        cut.focus()
        assert cut.evaluate(height) >= 5 * before
        page.locator("[data-sort=tables]").press("Enter")
        expect(page.locator("#feeds tr").first).to_contain_text("gone")
        browser.check()


def test_many_feeds_are_shown_page_by_page(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, Browser(server.url) as browser:
        server.sql("CREATE TABLE t (id INT8 PRIMARY KEY)")
        server.sql("CREATE CHANGEFEED FOR t INTO 'null://' WITH paused;" * 53)
        page = browser.open("/")
        rows, place = page.locator("#feeds tr"), page.locator("#place")
        expect(rows).to_have_count(50, timeout=PATIENCE_MS)
        expect(place).to_have_text("Page 1 of 2, 53 feeds", timeout=PATIENCE_MS)
        expect(page.locator("#previous")).to_be_disabled()
        page.locator("#next").click()
        expect(rows).to_have_count(3)
        expect(page.locator("#next")).to_be_disabled()
        page.locator("#previous").click()
        expect(rows).to_have_count(50)
        browser.check()


def test_the_pages_work_by_keyboard(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server, Browser(server.url) as browser:
        page = browser.open("/compare")
        expect(page.locator("#connection")).to_have_text("live")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        while page.evaluate("document.activeElement.id") != "run":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        mark(page, "workload starts")
        browser.check()
