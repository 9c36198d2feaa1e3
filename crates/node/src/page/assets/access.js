// What is not shown to this reader, why, and the token that shows it.

const at = (id) => document.getElementById(id);
// Kept by each tab, and gone with the last of them: a new one asks the others, which are of this service alone.
const KEPT = "telltale-token";
const tabs = new BroadcastChannel(KEPT);

/** `changed()` is called when there is another token. Returns { token(), show(snapshot), refused(is) }. */
export function access(changed) {
  let token = sessionStorage.getItem(KEPT) ?? "";

  function open() {
    at("token").value = token;
    at("access").showModal();
    at("token").focus();
  }

  function keep(other) {
    if (token === other) return;
    token = other;
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
    changed();
  }

  function use(other) {
    at("access").close();
    keep(other);
    tabs.postMessage({ token });
  }

  tabs.addEventListener("message", ({ data }) => {
    if (data.asks) token && tabs.postMessage({ token });
    else keep(data.token);
  });
  if (!token) tabs.postMessage({ asks: true });

  at("token-button").addEventListener("click", open);
  at("withheld-token").addEventListener("click", open);
  at("access-close").addEventListener("click", () => at("access").close());
  at("token-forget").addEventListener("click", () => use(""));
  at("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    use(at("token").value.trim());
  });

  return {
    token: () => token,
    /** Says of a snapshot which processes are in no row, and what would show them. */
    show(snapshot) {
      tell(at("withheld"), withheld(snapshot));
      tell(at("closed"), closed(snapshot));
      const { has_token: hasToken, knows_loopback: knowsLoopback } = snapshot.reader;
      at("access-loopback").hidden = !knowsLoopback;
      at("withheld-token").hidden = !hasToken;
      note(hasToken ? "" : "This service has no token: it was started without token_file.");
    },
    /** Says that the service did not take the token. */
    refused() {
      note(token ? "The service does not take this token." : "");
    },
  };
}

function note(words) {
  at("access-note").hidden = !words;
  at("access-note").textContent = words;
}

function tell(line, words) {
  line.hidden = !words;
  const into = line.querySelector("span") ?? line;
  if (into.textContent !== words) into.textContent = words;
}

function some(number) {
  return number === 1 ? "1 process is" : `${number} processes are`;
}

function withheld({ withheld_processes: count = 0, reader }) {
  if (!count) return "";
  const whose = reader.sees === "own" ? "Of others, " : "";
  const why = "Their names, users and command lines are for their owner, for root, and for callers with the service's token. The devices' sums have their memory.";
  const how = reader.has_token ? "" : " This service has no token; start it with --token-file FILE, a file of mode 0600 with one word of at least 16 characters.";
  return `${whose}${some(count)} not shown. ${why}${how}`;
}

function closed({ closed_processes: count = 0 }) {
  return count ? `${some(count)} closed to the service and not counted: it runs as a user who may not read their ledgers.` : "";
}
