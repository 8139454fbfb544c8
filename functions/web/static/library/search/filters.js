// The form that filters the documents of the library: status, type, language, author, day of upload.

import { el } from "../../shared/dom.js";
import { t } from "../../language/i18n.js";

const DAY = 86400000;
const STATUSES = { ready: ["indexed", "reindexing"], work: ["uploaded", "processing"], failed: ["failed"], missing: ["awaiting_upload"] };
const CHOICES = { status: Object.keys(STATUSES), type: ["pdf", "docx", "txt", "md"], lang: ["en", "fr", "simple"], added: ["1", "7", "30", "365"] };
const TYPING_PAUSE = 300;

/** Fills `node` with the form; `onChange(filters)` receives the parameters of the list, null or empty where all pass. */
export function drawFilters(node, { onChange }) {
  const selects = Object.entries(CHOICES).map(([name, values]) => select(name, values));
  const author = el("input", { type: "search", class: "input small", name: "author", placeholder: t("filter.author"), "aria-label": t("filter.author"), "data-testid": "filter-author" });
  const chosen = new FormData(node.querySelector("form") ?? undefined);
  const clear = el("button", { type: "reset", class: "button quiet small", "data-testid": "filter-clear" }, t("filter.clear"));
  const form = el("form", { class: "filter-form" }, selects, author, clear);
  let timer = null;
  const tell = () => onChange(read(form));
  form.addEventListener("change", tell);
  author.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(tell, TYPING_PAUSE);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(tell)); // the fields are emptied after the event
  node.replaceChildren(form);
  for (const [name, value] of chosen) form.elements[name].value = value;
}

const select = (name, values) => el("select", { class: "input small", name, "aria-label": t(`filter.${name}`), "data-testid": `filter-${name}` },
  el("option", { value: "" }, t(`filter.${name}`)),
  ...values.map((value) => el("option", { value }, t(`filter.${name}.${value}`))));

function read(form) {
  const { status, type, lang, added, author } = Object.fromEntries(new FormData(form));
  return {
    status: STATUSES[status] ?? [], file_type: type || null, lang: lang || null, author: author.trim() || null,
    added_from: added ? new Date(Date.now() - Number(added) * DAY).toISOString().slice(0, 10) : null,
  };
}
