// The chart: latencies over time on a log scale, with marks where something was done.

import { clock } from "/web/format.js";

const DECADES = [0.1, 1, 10, 100, 1000, 10000];
const DASHES = { polling: [], rangefeed: [7, 4], leasing: [] }; // not by colour alone

// A canvas knows no CSS variables: an element resolves them, in the theme that is on.
const probe = document.createElement("span");

function colour(name) {
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

function family() {
  return getComputedStyle(document.body).fontFamily;
}

export class LatencyChart {
  constructor(container, subjects) {
    this.container = container;
    this.subjects = subjects;
    this.marks = [];
    this.data = [[], ...subjects.map(() => [])];
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(container);
    this.make();
    document.addEventListener("themechange", () => this.make());
  }

  make() {
    this.plot?.destroy();
    const ink = colour("--muted");
    const grid = { stroke: colour("--line"), width: 1 };
    const font = `12px ${family()}`;
    this.plot = new uPlot(
      {
        width: this.container.clientWidth || 600,
        height: this.container.clientHeight || 320,
        cursor: { drag: { x: false, y: false } },
        legend: { show: true, live: true },
        scales: {
          x: { time: true },
          y: { distr: 3, log: 10, range: () => [DECADES[0], DECADES.at(-1)] },
        },
        axes: [
          { stroke: ink, grid, ticks: grid, font, space: 80, size: 34, values: (_, splits) => splits.map((at) => clock(at * 1000)) },
          {
            stroke: ink,
            grid,
            ticks: grid,
            font,
            size: 64,
            splits: () => DECADES,
            filter: (_, splits) => splits, // all of them: uPlot would drop some where there is little room
            values: (_, splits) => splits.map((value) => (value >= 1000 ? `${value / 1000} s` : `${value} ms`)),
          },
        ],
        series: [
          { value: (_, at) => (at === null ? "–" : clock(at * 1000)) },
          ...this.subjects.map((subject) => ({
            label: subject === "rangefeed" ? "range feed" : subject,
            stroke: colour(`--${subject}`),
            width: 2,
            dash: DASHES[subject],
            points: { show: false },
            value: (_, value) => (value === null ? "–" : `${value.toPrecision(3)} ms`),
          })),
        ],
        hooks: { draw: [(plot) => this.drawMarks(plot)] },
      },
      this.data,
      this.container,
    );
    // Its legend takes what height its fonts and styles give it, which may come later than the chart.
    this.observer.observe(this.container.querySelector(".u-legend"));
  }

  resize() {
    const legend = this.container.querySelector(".u-legend");
    const height = this.container.clientHeight - (legend?.offsetHeight ?? 0);
    this.plot.setSize({ width: this.container.clientWidth, height: Math.max(160, height) });
  }

  show(points, marks) {
    this.data = [
      points.map((point) => point.at_ms / 1000),
      ...this.subjects.map((_, place) => points.map((point) => this.clamp(point.latency_ms[place]))),
    ];
    this.marks = marks;
    this.plot.setData(this.data);
  }

  clamp(value) {
    if (value === null || value === undefined) return null;
    return Math.min(Math.max(value, DECADES[0]), DECADES.at(-1));
  }

  drawMarks(plot) {
    const { ctx: pen, bbox } = plot;
    const ratio = window.devicePixelRatio || 1;
    pen.save();
    pen.strokeStyle = colour("--mark");
    pen.fillStyle = colour("--text");
    pen.font = `${11 * ratio}px ${family()}`;
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    pen.lineWidth = ratio;
    pen.setLineDash([3 * ratio, 3 * ratio]);
    let row = 0;
    for (const mark of this.marks) {
      const x = plot.valToPos(mark.at_ms / 1000, "x", true);
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
      pen.beginPath();
      pen.moveTo(x, bbox.top);
      pen.lineTo(x, bbox.top + bbox.height);
      pen.stroke();
      const width = pen.measureText(mark.label).width;
      const left = x + width + 6 * ratio > bbox.left + bbox.width ? x - width - 4 * ratio : x + 4 * ratio;
      pen.fillText(mark.label, left, bbox.top + (14 + 14 * (row % 3)) * ratio);
      row += 1;
    }
    pen.restore();
  }
}
