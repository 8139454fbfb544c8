// The colours of the page: those of the system, or light or dark as the user chose.

import { byId, setAttribute } from "../shared/dom.js";
import { onLanguage, t } from "../language/i18n.js";

const KEY = "ibid.theme";
const THEMES = ["system", "light", "dark"];

/** Show the chosen theme, and let the button in the top bar go to the next one. */
export function listenToTheme() {
  const button = byId("theme");
  let theme = stored();
  const draw = () => {
    setAttribute(document.documentElement, "data-theme", theme === "system" ? null : theme);
    button.dataset.theme = theme;
    for (const name of ["aria-label", "title"]) setAttribute(button, name, t(`theme.${theme}`));
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store(theme);
    draw();
  });
  onLanguage(draw);
  draw();
}

function stored() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}

function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
