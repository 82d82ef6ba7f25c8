// A stream of states from the server, and what the page says of the connection.
// The browser reconnects by itself; a server that comes back with another store starts anew.

const REFUSED = [401, 403]; // asking again would have a browser ask for the password again, each second

export function follow(path, onState) {
  const shown = document.getElementById("connection");
  const say = (state, text) => {
    shown.dataset.state = state;
    shown.textContent = text;
  };
  const source = new EventSource(path);
  source.addEventListener("open", () => say("live", "live"));
  source.addEventListener("message", (event) => onState(JSON.parse(event.data)));
  source.addEventListener("error", async () => {
    if (source.readyState !== EventSource.CLOSED) {
      say("lost", "server away, trying again…");
      return;
    }
    // A reply that is no stream closed the source for good, and an EventSource does not tell which reply it was.
    const problem = await refusal(path);
    if (problem && REFUSED.includes(problem.status)) {
      say("lost", `${problem.title}: reload the page to try again`);
      return;
    }
    say("lost", `${problem?.title ?? "server away"}, trying again…`);
    setTimeout(() => follow(path, onState), 1000);
  });
}

// The server's problem document for who asks for the stream; null where there is none.
async function refusal(path) {
  const asking = new AbortController();
  try {
    const answer = await fetch(path, { signal: asking.signal });
    const said = answer.headers.get("content-type") ?? "";
    return said.startsWith("application/problem+json") ? await answer.json() : null;
  } catch {
    return null;
  } finally {
    asking.abort(); // a stream, which would go on
  }
}
