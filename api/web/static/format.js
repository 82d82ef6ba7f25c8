// Numbers as people read them.

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 10000) return `${(value / 1000).toFixed(0)} s`;
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

// Shows a name in a cell that may break it behind its dots and slashes, and leaves the cell alone where it says so already.
export function showName(cell, name) {
  if (cell.textContent === name) return;
  const parts = name.split(/(?<=[./?&,])/);
  cell.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
}

export function clock(unixMs) {
  return new Date(unixMs).toLocaleTimeString("en-GB");
}
