// The overview: a row for each changefeed, kept from event to event so that focus and selection stay.

import { follow } from "/web/stream.js";
import { milliseconds, rate } from "/web/format.js";
import { drawSparkline } from "/web/sparkline.js";

const HISTORY = 120; // events, one a second

const feeds = new Map(); // job id -> { row, cells, history, last }
let storeId = null;

const body = document.getElementById("feeds");

function cell(row, className, label) {
  const made = document.createElement("td");
  if (className) made.className = className;
  made.dataset.label = label;
  row.append(made);
  return made;
}

function makeRow(jobId) {
  const row = document.createElement("tr");
  row.id = `feed-${jobId}`;
  const cells = {
    tables: cell(row, "", "Tables"),
    state: cell(row, "", "State"),
    sink: cell(row, "sink", "Sink"),
    rate: cell(row, "number", "Rows/s"),
    behind: cell(row, "number", "Behind"),
    spark: cell(row, "", "Last two minutes"),
    emit: cell(row, "number", "Emit p50 / p99"),
    sunk: cell(row, "number", "Sink p50 / p99"),
  };
  cells.badge = document.createElement("span");
  cells.badge.className = "badge";
  cells.status = document.createElement("small");
  cells.state.append(cells.badge, cells.status);
  cells.canvas = document.createElement("canvas");
  cells.canvas.className = "spark";
  cells.canvas.setAttribute("role", "img");
  cells.spark.append(cells.canvas);
  return { row, cells, history: [], last: null };
}

function pair(low, high) {
  return low === null ? "–" : `${milliseconds(low)} / ${milliseconds(high)}`;
}

function update(feed, known, at) {
  const { cells, history } = known;
  const seconds = known.last ? (at - known.last.at) / 1000 : 0;
  const perSecond = seconds > 0 ? Math.max(0, (feed.rows - known.last.rows) / seconds) : null;
  if (!known.last || at > known.last.at) known.last = { at, rows: feed.rows };
  if (perSecond !== null) history.push(perSecond);
  if (history.length > HISTORY) history.shift();
  cells.tables.textContent = feed.tables;
  cells.sink.textContent = feed.sink;
  cells.badge.textContent = feed.state;
  cells.badge.dataset.state = feed.state;
  cells.status.textContent = feed.error ?? feed.status ?? "";
  cells.rate.textContent = feed.final ? "–" : rate(perSecond ?? history.at(-1) ?? null);
  cells.behind.textContent = milliseconds(feed.behind_ms);
  cells.emit.textContent = pair(feed.emit_ms_p50, feed.emit_ms_p99);
  cells.sunk.textContent = pair(feed.sink_ms_p50, feed.sink_ms_p99);
  cells.canvas.setAttribute("aria-label", `rows a second, now ${rate(history.at(-1) ?? null)}`);
  drawSparkline(cells.canvas, history, HISTORY);
}

function show(state) {
  if (state.store_id !== storeId) {
    storeId = state.store_id; // another store: nothing of what was known is its
    feeds.clear();
    body.replaceChildren();
  }
  document.getElementById("store").textContent = `Store ${state.store_id}`;
  document.getElementById("empty").hidden = state.feeds.length > 0;
  document.getElementById("feeds-panel").hidden = state.feeds.length === 0;
  const present = new Set(state.feeds.map((feed) => feed.job_id));
  for (const [jobId, known] of feeds) {
    if (!present.has(jobId)) {
      known.row.remove();
      feeds.delete(jobId);
    }
  }
  state.feeds.forEach((feed, place) => {
    let known = feeds.get(feed.job_id);
    if (!known) {
      known = makeRow(feed.job_id);
      feeds.set(feed.job_id, known);
    }
    if (body.children[place] !== known.row) body.insertBefore(known.row, body.children[place] ?? null);
    update(feed, known, state.monotonic_ms);
  });
}

follow("/v1/overview/events", show);
