// The overview: a row for each changefeed, kept from event to event so that focus and selection stay.

import { follow } from "/web/stream.js";
import { milliseconds, rate, showName } from "/web/format.js";
import { drawSparkline } from "/web/sparkline.js";

const HISTORY = 120; // events, one a second
const PAGE = 50; // feeds

const SORTS = {
  job: (feed) => BigInt(feed.job_id),
  tables: (feed) => feed.tables,
  state: (feed) => feed.state,
  sink: (feed) => feed.sink,
  rate: (feed) => feeds.get(feed.job_id)?.history.at(-1) ?? -1,
  behind: (feed) => feed.behind_ms ?? -1,
  emit: (feed) => feed.emit_ms_p50 ?? -1,
  sunk: (feed) => feed.sink_ms_p50 ?? -1,
};

const feeds = new Map(); // job id -> { row, cells, history, last }
let storeId = null;
let latest = null; // the last event
let page = 0;
let sorting = null; // { by, down }; as the server has them without

const body = document.getElementById("feeds");
const find = document.getElementById("find");
const ended = document.getElementById("ended");

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
    job: cell(row, "sink", "Job"),
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
  cells.names = document.createElement("div");
  cells.names.className = "names";
  cells.tables.append(cells.names);
  cells.job.textContent = jobId;
  return { row, cells, history: [], last: null };
}

// Names of more lines than a row shows are all shown to who goes to them, by a click or the Tab key.
function markCut(names) {
  if (names.scrollHeight > names.clientHeight + 1) names.tabIndex = 0;
  else if (document.activeElement !== names) names.removeAttribute("tabindex");
}

// Whether a feed has ended as somebody meant it to: one that failed is shown until its job is listed no longer.
function over(feed) {
  return feed.final && feed.state !== "failed";
}

function pair(low, high) {
  return low === null ? "–" : `${milliseconds(low)} / ${milliseconds(high)}`;
}

// The words of a feed's status but the state, which has a badge.
function words(feed) {
  if (!feed.status || feed.status === feed.state) return "";
  return feed.status.startsWith(`${feed.state}: `) ? feed.status.slice(feed.state.length + 2) : feed.status;
}

function update(feed, known, at) {
  const { cells, history } = known;
  const seconds = known.last ? (at - known.last.at) / 1000 : 0;
  const perSecond = seconds > 0 ? Math.max(0, (feed.rows - known.last.rows) / seconds) : null;
  if (!known.last || at > known.last.at) known.last = { at, rows: feed.rows };
  if (perSecond !== null) history.push(perSecond);
  if (history.length > HISTORY) history.shift();
  showName(cells.names, feed.tables);
  showName(cells.sink, feed.sink);
  cells.badge.textContent = feed.state;
  cells.badge.dataset.state = feed.state;
  cells.status.textContent = feed.error ?? words(feed);
  cells.rate.textContent = feed.final ? "–" : rate(perSecond ?? history.at(-1) ?? null);
  cells.behind.textContent = milliseconds(feed.behind_ms);
  cells.emit.textContent = pair(feed.emit_ms_p50, feed.emit_ms_p99);
  cells.sunk.textContent = pair(feed.sink_ms_p50, feed.sink_ms_p99);
  cells.canvas.setAttribute("aria-label", `rows a second, now ${rate(history.at(-1) ?? null)}`);
  drawSparkline(cells.canvas, history, HISTORY);
}

// What of the feeds is looked for: all that run or have failed, and those that ended otherwise where they are asked for.
function chosen(state) {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = state.feeds.filter((feed) => {
    const text = [feed.job_id, feed.tables, feed.sink, feed.state].join(" ").toLowerCase();
    return (ended.checked || !over(feed)) && words.every((word) => text.includes(word));
  });
  if (!sorting) return found;
  const key = SORTS[sorting.by];
  const order = sorting.down ? -1 : 1;
  const compared = (a, b) => (a < b ? -order : a > b ? order : 0);
  return found.sort((one, other) => compared(key(one), key(other)));
}

function draw() {
  const found = chosen(latest);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  page = Math.min(page, pages - 1);
  const shown = found.slice(page * PAGE, (page + 1) * PAGE);
  const present = new Set(shown.map((feed) => feeds.get(feed.job_id).row));
  for (const row of [...body.children]) if (!present.has(row)) row.remove();
  shown.forEach((feed, place) => {
    const { row } = feeds.get(feed.job_id);
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
  });
  for (const feed of shown) markCut(feeds.get(feed.job_id).cells.names);
  document.getElementById("feeds-panel").hidden = found.length === 0;
  document.getElementById("none").hidden = found.length > 0 || latest.feeds.length === 0;
  const gone = latest.feeds.filter(over).length;
  document.getElementById("ended-label").textContent = `Ended feeds (${gone})`;
  document.getElementById("pages").hidden = pages === 1;
  document.getElementById("place").textContent = `Page ${page + 1} of ${pages}, ${found.length} feeds`;
  document.getElementById("previous").disabled = page === 0;
  document.getElementById("next").disabled = page === pages - 1;
  for (const button of document.querySelectorAll(".sort")) {
    const mine = sorting?.by === button.dataset.sort;
    if (mine) button.parentElement.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else button.parentElement.removeAttribute("aria-sort");
  }
}

function show(state) {
  latest = state;
  if (state.store_id !== storeId) {
    storeId = state.store_id; // another store: nothing of what was known is its
    feeds.clear();
    body.replaceChildren();
  }
  document.getElementById("store").textContent = `Store ${state.store_id}`;
  const warning = document.getElementById("warning");
  warning.textContent = state.warning ?? "";
  warning.hidden = !state.warning;
  document.getElementById("choices").hidden = state.feeds.length === 0;
  document.getElementById("empty").hidden = state.feeds.length > 0;
  const present = new Set(state.feeds.map((feed) => feed.job_id));
  for (const jobId of feeds.keys()) if (!present.has(jobId)) feeds.delete(jobId);
  for (const feed of state.feeds) {
    if (!feeds.has(feed.job_id)) feeds.set(feed.job_id, makeRow(feed.job_id));
    update(feed, feeds.get(feed.job_id), state.monotonic_ms);
  }
  draw();
}

function turn(by) {
  page += by;
  draw();
}

for (const input of [find, ended]) input.addEventListener("input", () => latest && draw());
document.getElementById("previous").addEventListener("click", () => turn(-1));
document.getElementById("next").addEventListener("click", () => turn(1));
for (const button of document.querySelectorAll(".sort")) {
  button.addEventListener("click", () => {
    const by = button.dataset.sort;
    sorting = sorting?.by !== by ? { by, down: false } : sorting.down ? null : { by, down: true };
    if (latest) draw();
  });
}

follow("/v1/overview/events", show);
