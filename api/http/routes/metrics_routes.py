"""`GET /metrics`: what the node counts, in Prometheus' text format.

Names are CockroachDB's where the meaning is the same, and so are their units: durations are
nanoseconds. What CockroachDB does not have begins with `tailrace_`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ....catalog.jobs import JobRecord
from ....changefeed import JOB_KIND
from ....changefeed.pipeline.live import FeedState
from ....kvlayer.clock import Timestamp, seconds_between
from ....kvlayer.metrics import Histogram, Metrics
from ....kvlayer.relaxed.ids import seconds_of
from ....kvlayer.store import Store
from ....sql.results.as_of import datetime_of
from ...node import Node

FEED_LABELS = ("job_id", "scope")
"""`scope` is the feed's option `metrics_label`."""

LOG_LABELS = ("log", "domain")


def metrics_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counters, gauges and histograms, in Prometheus' text format."""
        registry = CollectorRegistry()
        feeds = [await _stand(node, job) for job in node.jobs.live() if job.kind == JOB_KIND]
        registry.register(NodeCollector(node, feeds, await node.store.now()))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStand:
    """A changefeed that has not ended, wherever it runs."""

    job_id: int
    label: str
    resolved: Timestamp
    """How far it has come, or where it begins."""
    lagging_ranges: int


class NodeCollector(Collector):
    """The counts of a node at one moment, as metric families."""

    def __init__(self, node: Node, feeds: Sequence[FeedStand], now: Timestamp) -> None:
        self._node = node
        self._feeds = feeds
        self._now = now

    def collect(self) -> Iterator[Metric]:
        if self._node.served is not None:
            yield from self._served(self._node.served)
        yield from self._counted(self._node.store.metrics)
        yield _gauge(
            "sql_leases_active",
            "descriptor versions that this node holds",
            self._node.services.leases.active_count,
        )
        yield from self._changefeeds()
        yield from self._relaxed_logs()
        yield _histogram(
            "tailrace_event_loop_delay",
            "how late the event loop runs what is due, in nanoseconds",
            self._node.loop_delay.histogram,
        )
        steps = self._node.loop_steps
        yield CounterMetricFamily(
            "tailrace_event_loop_long_steps_total",
            "steps of the event loop that took more than 10 ms of CPU time",
            steps.count,
        )
        yield _gauge(
            "tailrace_event_loop_longest_step_nanos",
            "the CPU time of the longest step of the event loop",
            steps.longest_ns,
        )

    def _served(self, store: Store) -> Iterator[Metric]:
        yield _gauge(
            "tailrace_log_durable_index", "the last durable entry", store.log.durable_index
        )
        yield _gauge(
            "tailrace_log_full",
            "1 while the disk has no room for the log's next segment",
            store.log.full is not None,
        )
        closed = store.closed_timestamps
        yield _gauge(
            "kv_closed_timestamp_max_behind_nanos",
            "now less the closed timestamp",
            _behind_ns(closed.closed, self._now),
        )
        yield _gauge(
            "tailrace_closed_timestamp_holders",
            "transactions that hold the closed timestamp back",
            closed.holder_count,
        )

    def _counted(self, metrics: Metrics) -> Iterator[Metric]:
        for name, value in metrics.items():
            help_text = name.removesuffix("_total").replace("_", " ")
            if name.endswith("_total"):
                yield CounterMetricFamily(name, help_text, value)
            else:
                yield _gauge(name, help_text, value)

    def _changefeeds(self) -> Iterator[Metric]:
        behind = GaugeMetricFamily(
            "changefeed_max_behind_nanos", "now less resolved, in every state", labels=FEED_LABELS
        )
        emitted = CounterMetricFamily(
            "changefeed_emitted_messages", "rows handed to the sink", labels=FEED_LABELS
        )
        emit = HistogramMetricFamily(
            "tailrace_changefeed_emit_latency",
            "from the call of commit to the sink's receipt, in nanoseconds",
            labels=FEED_LABELS,
        )
        commit = HistogramMetricFamily(
            "changefeed_commit_latency",
            "from the call of commit until durable in the sink, in nanoseconds",
            labels=FEED_LABELS,
        )
        breaches = CounterMetricFamily(
            "tailrace_changefeed_slo_breaches",
            "windows in which commits took longer than the feed's slo_p99",
            labels=FEED_LABELS,
        )
        lagging = GaugeMetricFamily(
            "changefeed_lagging_ranges",
            "ranges that are further behind than the feed's lagging_ranges_threshold",
            labels=FEED_LABELS,
        )
        running = 0
        for feed in self._feeds:
            live = self._node.feeds.feed(feed.job_id)
            label = (str(feed.job_id), feed.label)
            behind.add_metric(label, _behind_ns(feed.resolved, self._now))
            lagging.add_metric(label, feed.lagging_ranges)
            if live is None:
                continue
            running += live.state in (FeedState.INITIAL_SCAN, FeedState.CATCH_UP, FeedState.STEADY)
            emitted.add_metric(label, live.rows_emitted)
            breaches.add_metric(label, live.slo_breaches)
            _add_histogram(emit, label, live.stages.emit)
            _add_histogram(commit, label, live.stages.sink)
        yield _gauge("changefeed_running", "changefeeds that run on this node", running)
        yield from (behind, lagging, breaches, emitted, emit, commit)

    def _relaxed_logs(self) -> Iterator[Metric]:
        """Metrics of the relaxed logs that were loaded through this node since it started."""
        gaps = GaugeMetricFamily(
            "tailrace_relaxed_gaps",
            "epochs of which a record or events are missing",
            labels=LOG_LABELS,
        )
        pending = GaugeMetricFamily(
            "tailrace_relaxed_pending_events",
            "events that no change set has held yet",
            labels=LOG_LABELS,
        )
        unquiesced = GaugeMetricFamily(
            "tailrace_relaxed_unquiesced_seconds",
            "now less the last quiescence point that is known, by the clock of the log's writers",
            labels=LOG_LABELS,
        )
        age = GaugeMetricFamily(
            "tailrace_relaxed_open_epoch_seconds",
            "now less the begin of the epoch that has events and no record yet",
            labels=LOG_LABELS,
        )
        now = datetime_of(self._now).timestamp()
        for name, state in self._node.relaxed.loaded_here():
            label = (name, f"{state.domain:016x}")
            gaps.add_metric(label, len(state.gaps))
            pending.add_metric(label, state.pending)
            if state.position:
                unquiesced.add_metric(label, max(now - seconds_of(state.position), 0.0))
            if state.open_since:
                age.add_metric(label, max(now - seconds_of(state.open_since), 0.0))
        yield from (gaps, pending, unquiesced, age)


async def _stand(node: Node, job: JobRecord) -> FeedStand:
    progress = await node.jobs.progress(job.id)
    status = node.feeds.status(job.id, job.payload, progress)
    return FeedStand(
        job_id=job.id,
        label=status.metrics_label,
        resolved=max(status.resolved, status.start_at),
        lagging_ranges=await node.feeds.lagging_ranges(job.id, job.payload, progress),
    )


def _behind_ns(at: Timestamp, now: Timestamp) -> float:
    return max(0.0, seconds_between(at, now)) * 1e9


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value)


def _histogram(name: str, help_text: str, histogram: Histogram) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, help_text, labels=())
    _add_histogram(family, (), histogram)
    return family


def _add_histogram(
    family: HistogramMetricFamily, label: tuple[str, ...], histogram: Histogram
) -> None:
    buckets = [(str(bound), count) for bound, count in histogram.cumulative()]
    family.add_metric(label, [*buckets, ("+Inf", histogram.count)], histogram.sum)
