// Snapshots as the service sends them: server-sent events, read by fetch because EventSource cannot
// send a token. Reconnects for ever, waiting longer each time.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
// The service sends something at least this often; silence for longer is a dead connection.
const SILENCE = 30_000;
// A snapshot of any machine is smaller; more without an end is not a snapshot.
const LONGEST_EVENT = 64 << 20;

/** The service does not take the token. */
class Refused extends Error {}

// Browsers have words of their own for a connection that fails, and no two the same.
function words(error) {
  if (error.name === "AbortError") return "no answer";
  return error instanceof TypeError ? "no connection" : error.message;
}

// Hands each event to `take`, from pieces that end anywhere. A piece is looked through once: an
// event of many megabytes comes in hundreds of them. The service ends lines with a line feed alone.
function collected(take) {
  let parts = [];
  let length = 0;
  return (piece) => {
    let rest = parts.length && parts.at(-1).endsWith("\n") && piece.startsWith("\n") ? ended(piece.slice(1)) : piece;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      parts.push(rest.slice(0, end));
      rest = ended(rest.slice(end + 2));
    }
    if (!rest) return;
    parts.push(rest);
    length += rest.length;
    if (length > LONGEST_EVENT) throw new Error("an event without an end");
  };

  function ended(rest) {
    const event = parts.join("");
    parts = [];
    length = 0;
    take(event);
    return rest;
  }
}

/**
 * Follows the stream, whose address `url` gives each time. `on` has snapshot(data, id) and lost(words, refused), which says why there is
 * no stream and whether it was the token. Returns { restart() }.
 */
export function follow(url, token, on) {
  let wait = FIRST_WAIT;
  let stop = new AbortController();
  let wake = () => {};
  let restarted = false;

  async function once() {
    stop = new AbortController();
    const headers = { Accept: "text/event-stream" };
    if (token()) headers.Authorization = `Bearer ${token()}`;
    const answer = await fetch(url(), { headers, signal: stop.signal, cache: "no-store" });
    if (answer.status === 401) throw new Refused("the token is refused");
    if (!answer.ok) throw new Error(`the service answers ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = collected(take);
    for (;;) {
      const silent = setTimeout(() => stop.abort(), SILENCE);
      const { done, value } = await reader.read();
      clearTimeout(silent);
      if (done) throw new Error("the service ended the stream");
      wait = FIRST_WAIT;
      events(value);
    }
  }

  function take(event) {
    const fields = { event: "message", data: "", id: undefined };
    for (const line of event.split("\n")) {
      const colon = line.indexOf(":");
      if (colon <= 0) continue;
      const name = line.slice(0, colon);
      const text = line.slice(colon + 1).replace(/^ /, "");
      fields[name] = name === "data" && fields.data ? `${fields.data}\n${text}` : text;
    }
    if (!fields.data || fields.event !== "snapshot") return;
    try {
      on.snapshot(JSON.parse(fields.data), Number(fields.id));
    } catch (error) {
      // A fault of this page is no fault of the connection.
      reportError(error);
    }
  }

  async function always() {
    for (;;) {
      restarted = false;
      try {
        await once();
      } catch (error) {
        if (!restarted) on.lost(`${words(error)}, trying again`, error instanceof Refused);
      }
      if (restarted) continue;
      await new Promise((resume) => {
        wake = resume;
        setTimeout(resume, wait * (0.5 + Math.random() / 2));
      });
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  always();
  return {
    /** Reconnects at once: the token has changed, or what is asked for. */
    restart() {
      wait = FIRST_WAIT;
      restarted = true;
      stop.abort();
      wake();
    },
  };
}
