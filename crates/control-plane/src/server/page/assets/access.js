// The coordinator's token, while this tab is open, and asking with it.

const KEY = "telltale-coordinator-token";
const at = (id) => document.getElementById(id);

// A coordinator that wants a token, and was given none or another.
export class TokenNeeded extends Error {}

// Whether the dialog has opened by itself since there was another token: a user who closes it is not asked again.
let wasAsked = false;

// Asks for the token, once, and says why.
export function askForToken(why) {
  at("token-button").hidden = false;
  at("access-why").textContent = why;
  if (wasAsked || at("access").open) return;
  wasAsked = true;
  at("access").showModal();
  at("token").focus();
}

// Sets the dialog up; `changed` is called when there is another token, or none any more.
export function access(changed) {
  const dialog = at("access");
  const use = (token) => {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
    // A user who forgets a token wants no dialog; one that is wrong is asked for again.
    wasAsked = !token;
    at("token").value = "";
    dialog.close();
    changed();
  };
  // Where no token is wanted and none is kept there is nothing to do with it.
  at("token-button").hidden = !sessionStorage.getItem(KEY);
  at("token-button").addEventListener("click", () => dialog.showModal());
  at("access-close").addEventListener("click", () => dialog.close());
  at("token-forget").addEventListener("click", () => use(""));
  at("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    use(at("token").value.trim());
  });
}

// The answer to a question, or an error that says why there is none. Without a token the address is
// asked as it is: where a certificate is wanted, the browser has shown it.
export async function ask(path) {
  const token = sessionStorage.getItem(KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  let answer;
  try {
    answer = await fetch(`api/v1/${path}`, { headers, cache: "no-store" });
  } catch {
    throw new Error("the coordinator cannot be reached");
  }
  // A body that is not read keeps its connection.
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) {
    throw new TokenNeeded(token ? "this is not the coordinator's token" : "the coordinator's token is needed");
  }
  if (!answer.ok) {
    const leader = body.leader ? `; the leader is at ${body.leader}` : "";
    throw new Error((body.error ?? `the coordinator answered ${answer.status}`) + leader);
  }
  return body;
}
