// The comparison: three live lines, the figures beside them, and the buttons.

import { follow } from "/web/stream.js";
import { clock, milliseconds } from "/web/format.js";
import { LatencyChart } from "/web/latency_chart.js";

const SUBJECTS = ["polling", "rangefeed", "leasing"];

const buttons = {
  run: document.getElementById("run"),
  lock: document.getElementById("lock"),
  transaction: document.getElementById("transaction"),
};
const error = document.getElementById("error");
const marks = document.getElementById("marks");
const chart = new LatencyChart(document.getElementById("chart"), SUBJECTS);
let shownMarks = "";
let told = null; // the error of the last state

function label(button, text, action, enabled) {
  button.textContent = text;
  button.dataset.action = action;
  if (!button.dataset.busy) button.disabled = !enabled;
}

function complain(text) {
  error.textContent = text ?? "";
  error.hidden = !text;
}

function showMarks(list) {
  const key = JSON.stringify(list);
  if (key === shownMarks) return;
  shownMarks = key;
  document.getElementById("no-marks").hidden = list.length > 0;
  marks.replaceChildren(
    ...list.toReversed().map((mark) => {
      const item = document.createElement("li");
      const time = document.createElement("time");
      time.textContent = clock(mark.at_ms);
      const what = document.createElement("strong");
      what.textContent = mark.label;
      item.append(time, " ", what);
      if (mark.sql) {
        const sql = document.createElement("pre");
        sql.textContent = mark.sql;
        item.append(sql);
      }
      return item;
    }),
  );
}

function showFigures(list) {
  for (const figures of list) {
    const card = document.querySelector(`.card[data-subject="${figures.subject}"]`);
    for (const name of ["p50", "p95", "p99"]) {
      const shown = card.querySelector(`[data-value="${name}"]`);
      shown.textContent = milliseconds(figures[name]);
      shown.dataset.ms = figures[name] ?? "";
    }
  }
}

function show(state) {
  const prepared = state.points.length > 0 || state.running;
  label(buttons.run, state.running ? "Stop the workload" : "Start the workload", state.running ? "stop" : "start", true);
  label(buttons.lock, state.locked ? "Unlock the tables" : "Lock the tables", state.locked ? "unlock" : "lock", prepared);
  label(
    buttons.transaction,
    state.transaction_open ? "Close the long transaction" : "Open a long transaction",
    state.transaction_open ? "close-transaction" : "open-transaction",
    prepared,
  );
  if (state.error !== told) complain(state.error);
  told = state.error;
  showFigures(state.percentiles);
  showMarks(state.marks);
  chart.show(state.points, state.marks);
}

async function act(button) {
  button.dataset.busy = "yes";
  button.disabled = true;
  complain(null);
  try {
    const answer = await fetch(`/v1/compare/${button.dataset.action}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    const reply = await answer.json();
    delete button.dataset.busy;
    if (answer.ok) show(reply);
    else complain([reply.detail ?? reply.title, reply.hint].filter(Boolean).join(" "));
  } catch {
    complain("The server did not answer: try again when the page is live.");
  } finally {
    delete button.dataset.busy;
    button.disabled = false;
  }
}

for (const button of Object.values(buttons)) button.addEventListener("click", () => act(button));
follow("/v1/compare/events", show);
