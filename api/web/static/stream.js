// A stream of states from the server, and what the page says of the connection.
// The browser reconnects by itself; a server that comes back with another store starts anew.

export function follow(path, onState) {
  const shown = document.getElementById("connection");
  const say = (state, text) => {
    shown.dataset.state = state;
    shown.textContent = text;
  };
  const source = new EventSource(path);
  source.addEventListener("open", () => say("live", "live"));
  source.addEventListener("message", (event) => onState(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    say("lost", "server away, trying again…");
    // A reply that is no stream (a proxy's error page) closes the source for good: open another.
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(() => follow(path, onState), 1000);
    }
  });
}
