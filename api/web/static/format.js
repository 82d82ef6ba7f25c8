// Numbers as people read them.

// Units of long times: from how many milliseconds on each is used, and how many it has.
const LONG = [
  ["d", 48 * 3600e3, 24 * 3600e3],
  ["h", 2 * 3600e3, 3600e3],
  ["min", 120e3, 60e3],
  ["s", 10e3, 1e3],
];

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, least, size] of LONG) if (value >= least) return `${Math.floor(value / size)} ${unit}`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  if (value >= 100) return `${value.toFixed(0)} ms`;
  if (value >= 10) return `${value.toFixed(1)} ms`;
  return `${value.toFixed(2)} ms`;
}

export function rate(value) {
  if (value === null) return "–";
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  return value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1);
}

// Shows a name in a cell that may break it behind its dots, slashes and underscores, and leaves the cell alone where it says so already.
export function showName(cell, name) {
  if (cell.textContent === name) return;
  const parts = name.split(/(?<=[./?&,_])/);
  cell.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
}

export function clock(unixMs) {
  return new Date(unixMs).toLocaleTimeString("en-GB");
}
