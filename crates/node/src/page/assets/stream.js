// Snapshots as the service sends them: server-sent events, read by fetch because EventSource cannot
// send a token. Reconnects for ever, waiting longer each time.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
// The service sends something at least this often; silence for longer is a dead connection.
const SILENCE = 30_000;
// A snapshot of any machine is smaller; more without an end is not a snapshot.
const LONGEST_EVENT = 64 << 20;

/** Follows the stream. `on` has snapshot(data, id), state(name, words). Returns { restart() }. */
export function follow(url, token, on) {
  let wait = FIRST_WAIT;
  let stop = new AbortController();
  let wake = () => {};

  async function once() {
    stop = new AbortController();
    const headers = { Accept: "text/event-stream" };
    if (token()) headers.Authorization = `Bearer ${token()}`;
    const answer = await fetch(url, { headers, signal: stop.signal, cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status === 401 ? "the token is refused" : `the service answers ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const silent = setTimeout(() => stop.abort(), SILENCE);
      const { done, value } = await reader.read();
      clearTimeout(silent);
      if (done) throw new Error("the service ended the stream");
      wait = FIRST_WAIT;
      rest += value;
      if (rest.length > LONGEST_EVENT) throw new Error("an event without an end");
      const events = rest.replaceAll("\r\n", "\n").split("\n\n");
      rest = events.pop();
      for (const event of events) take(event);
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
    if (fields.data && fields.event === "snapshot") on.snapshot(JSON.parse(fields.data), Number(fields.id));
  }

  async function always() {
    for (;;) {
      try {
        await once();
      } catch (error) {
        const why = error.name === "AbortError" ? "no answer" : error.message;
        on.state("lost", `${why}; trying again`);
      }
      await new Promise((resume) => {
        wake = resume;
        setTimeout(resume, wait * (0.5 + Math.random() / 2));
      });
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  always();
  return {
    /** Connects anew, at once: the token has changed. */
    restart() {
      wait = FIRST_WAIT;
      stop.abort();
      wake();
    },
  };
}
