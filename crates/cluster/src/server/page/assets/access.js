// The coordinator's token, while this tab is open, and asking with it.

const KEY = "telltale-coordinator-token";
const at = (id) => document.getElementById(id);

// Sets the dialog up; `changed` is called when there is another token, or none any more.
export function access(changed) {
  const dialog = at("access");
  const use = (token) => {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
    at("token").value = "";
    dialog.close();
    changed();
  };
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
  if (answer.status === 401) {
    throw new Error(token ? "this is not the coordinator's token" : "the coordinator's token is needed");
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const leader = told.leader ? `; the one that leads is at ${told.leader}` : "";
    throw new Error((told.error ?? `the coordinator answered ${answer.status}`) + leader);
  }
  return told;
}
