// Light or dark: as the system has it, or as its reader chose.

const THEMES = ["", "light", "dark"];

/** `place` is the page's address, `changed()` is called when the colours are others. */
export function theme(place, changed) {
  const select = document.getElementById("theme");

  function use(name) {
    select.value = THEMES.includes(name) ? name : "";
    document.documentElement.dataset.theme = select.value;
    changed();
  }

  select.addEventListener("change", () => {
    use(select.value);
    place.set({ theme: select.value });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  place.bind("theme", use);
}
