"""The dashboard over HTTP: files, event streams, buttons. tests/system has a browser look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tailrace.api.web.assets import STATIC
from tailrace.api.web.overview import Overview
from tailrace.catalog.jobs import JobState
from tailrace.changefeed.pipeline.live import FeedState
from tests.harness.http_door import HttpDoor, problem_of
from tests.harness.webhook_receiver import WebhookReceiver

PAGES = ("/", "/compare")
PATIENCE_SECONDS = 20.0


def first_event(door: HttpDoor, path: str) -> dict[str, Any]:
    with door.client.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                state: dict[str, Any] = json.loads(line.removeprefix("data: "))
                return state
    raise AssertionError("the stream ended before its first event")


class References(HTMLParser):
    """What a page loads, and what it holds inline."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self._in: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        source = given.get("src") or (given.get("href") if tag == "link" else None)
        if source:
            self.loaded.append(source)
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        self.inline += [name for name in given if name == "style" or name.startswith("on")]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_served_under_a_policy_that_allows_nothing_inline(
    door: HttpDoor, page: str
) -> None:
    answer = door.client.get(page)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    found = References()
    found.feed(answer.text)
    assert not found.inline
    assert found.loaded
    for path in found.loaded:
        assert path.startswith("/web/"), path
        assert door.client.get(path).status_code == 200, path


def test_third_parties_files_come_with_their_licence() -> None:
    for folder in (STATIC / "vendor").iterdir():
        assert (folder / "LICENSE").is_file(), folder


@pytest.mark.parametrize("path", ["/web/../assets.py", "/web/%2e%2e/assets.py", "/web/nothing.js"])
def test_what_is_no_asset_is_not_found(door: HttpDoor, path: str) -> None:
    assert door.client.get(path).status_code == 404


def test_a_browser_is_given_a_page_where_there_is_none(door: HttpDoor) -> None:
    answer = door.client.get("/nowhere", headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert door.client.get("/nowhere").headers["content-type"] == "application/problem+json"


def test_how_far_behind_is_said_once(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    door.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
    door.wait_for_mirror("m.duckdb")
    feed = json.loads(door.run(Overview(door.node).render()))["feeds"][0]
    assert feed["behind_ms"] > 0
    assert "behind" not in feed["status"]


def test_a_feed_that_an_error_paused_says_why(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    job = door.rows("CREATE CHANGEFEED FOR t INTO 'null://' WITH on_error = 'pause'")[0][0]
    door.sql(f"SELECT wait_for_changefeed({job})")
    door.sql("DROP TABLE t")
    door.run(door.node.jobs.wait(job, JobState.PAUSED, timeout=PATIENCE_SECONDS))
    feed = json.loads(door.run(Overview(door.node).render()))["feeds"][0]
    assert feed["state"] == "paused"
    assert "paused by an error" in feed["status"]
    assert "was dropped" in feed["status"]


def test_a_failed_feed_stands_before_those_that_run(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY); CREATE TABLE u (k INT8 PRIMARY KEY)")
    failed, running, canceled = (
        door.rows(f"CREATE CHANGEFEED FOR {table} INTO 'null://'")[0][0] for table in "tuu"
    )
    door.sql(f"SELECT wait_for_changefeed({failed})")
    door.sql(f"DROP TABLE t; CANCEL JOB {canceled}")
    for job, state in ((failed, JobState.FAILED), (canceled, JobState.CANCELED)):
        door.run(door.node.jobs.wait(job, state, timeout=PATIENCE_SECONDS))
    feeds = json.loads(door.run(Overview(door.node).render()))["feeds"]
    assert [feed["job_id"] for feed in feeds] == [str(failed), str(running), str(canceled)]
    assert "was dropped" in feeds[0]["error"]


def test_a_feed_whose_receiver_fails_is_shown_as_retrying(door: HttpDoor) -> None:
    door.sql("SET CLUSTER SETTING changefeed.webhook.private_addresses.enabled = true")
    door.sql("SET CLUSTER SETTING changefeed.webhook.insecure_http.enabled = true")
    door.sql("SET CLUSTER SETTING jobs.retry.initial_backoff = '10m'")
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
    with WebhookReceiver() as receiver:
        receiver.status = 503
        sink = f"webhook-http://{receiver.address}"
        retry = """webhook_sink_config = '{"Retry": {"Max": 1}}'"""
        job = door.rows(f"CREATE CHANGEFEED FOR t INTO '{sink}' WITH {retry}")[0][0]
        live = door.node.feeds.watch(job)
        door.run(until(lambda: live.state is FeedState.BACKOFF))
        feed = json.loads(door.run(Overview(door.node).render()))["feeds"][0]
    assert feed["state"] == "retrying"
    assert "503" in feed["status"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


def test_the_loop_turns_between_the_feeds_of_a_reply(door: HttpDoor) -> None:
    """Each feed takes some tenths of a millisecond, and there may be hundreds."""
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    door.sql("CREATE CHANGEFEED FOR t INTO 'null://' WITH paused;" * 20)

    async def turns_of(work: Coroutine[object, object, object]) -> int:
        task, turns = asyncio.ensure_future(work), 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert door.run(turns_of(door.node.services.jobs.list(changefeeds_only=True))) >= 20
    assert door.run(turns_of(Overview(door.node).render())) >= 40


def test_a_foreign_host_name_is_refused(door: HttpDoor) -> None:
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", ""):
        refusal = problem_of(door.client.get("/healthz", headers={"host": host}))
        assert refusal["status"] == 421
    for host in ("localhost", "127.0.0.1:9", "[::1]:8080"):
        assert door.client.get("/healthz", headers={"host": host}).status_code == 200


def test_the_overview_names_tables_as_they_are(door: HttpDoor) -> None:
    door.sql('CREATE TABLE "a<b>\'c" (id INT8 PRIMARY KEY)')
    job = door.rows("CREATE CHANGEFEED FOR TABLE \"a<b>'c\" INTO 'null://'")[0][0]
    feed = first_event(door, "/v1/overview/events")["feeds"][0]
    assert feed["job_id"] == str(job)
    assert feed["tables"] == 'defaultdb.public."a<b>\'c"'


def test_the_overview_warns_of_a_store_that_is_not_well(door: HttpDoor) -> None:
    def warning() -> str | None:
        told: str | None = json.loads(door.run(Overview(door.node).render()))["warning"]
        return told

    assert warning() is None
    door.node.salvaged = True
    assert "--salvage" in (warning() or "")


def test_a_button_out_of_turn_says_why(door: HttpDoor) -> None:
    for action, why in (
        ("stop", "not running"),
        ("lock", "start the workload first"),
        ("open-transaction", "start the workload first"),
        ("close-transaction", "no long transaction"),
    ):
        refusal = problem_of(door.post(f"/v1/compare/{action}", {}))
        assert refusal["status"] == 409
        assert why in refusal["detail"]
    assert problem_of(door.post("/v1/compare/dance", {}))["status"] == 404
    assert problem_of(door.post("/v1/compare/start", {"x": 1}))["status"] == 422


def test_a_button_of_another_site_is_refused(door: HttpDoor) -> None:
    """A form of another origin can send text, but not JSON."""
    answer = door.client.post(
        "/v1/compare/start", content=b"{}", headers={"content-type": "text/plain"}
    )
    assert problem_of(answer)["status"] == 415


def samples(door: HttpDoor) -> Iterator[tuple[str, dict[str, str], float]]:
    text = door.client.get("/metrics").text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def test_metrics_count_what_a_feed_emits(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (id INT8 PRIMARY KEY) WITH (changefeed_optimized = true)")
    door.sql("CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb'")
    door.wait_for_mirror("duckdb:///m.duckdb")
    door.sql("INSERT INTO t VALUES (1), (2)")
    door.wait_for_mirror("duckdb:///m.duckdb")
    found = {name: value for name, labels, value in samples(door) if "le" not in labels}
    assert found["changefeed_running"] == 1
    assert found["changefeed_emitted_messages_total"] == 2
    assert found["changefeed_commit_latency_count"] == 1
    assert (
        0 < found["tailrace_changefeed_emit_latency_sum"] <= found["changefeed_commit_latency_sum"]
    )
    assert found["changefeed_max_behind_nanos"] > 0
    assert found["tailrace_changefeed_slo_breaches_total"] == 0
    assert found["changefeed_schemafeed_fast_answers_total"] > 0
    assert found["sql_leases_active"] >= 1


def test_metrics_bear_a_feeds_label_and_count_its_lagging_ranges(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (id INT8 PRIMARY KEY)")
    door.sql(
        "CREATE CHANGEFEED FOR t INTO 'null://' WITH paused, metrics_label = 'shop', "
        "lagging_ranges_threshold = '1us', lagging_ranges_polling_interval = '1us'"
    )
    door.sql("CREATE CHANGEFEED FOR t INTO 'null://' WITH paused")
    found = {
        labels["scope"]: value
        for name, labels, value in samples(door)
        if name == "changefeed_lagging_ranges"
    }
    assert found == {"shop": 1, "default": 0}
    door.sql("ALTER TABLE t SPLIT AT VALUES (5)")
    again = [value for name, _, value in samples(door) if name == "changefeed_lagging_ranges"]
    assert sorted(again) == [0, 2]


def test_histograms_are_cumulative(door: HttpDoor) -> None:
    counts = [
        value for name, _, value in samples(door) if name == "tailrace_event_loop_delay_bucket"
    ]
    assert counts == sorted(counts)
    assert len(counts) > 10
