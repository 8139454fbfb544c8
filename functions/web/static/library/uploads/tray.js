// The tray of uploads: one line that says how far all of them are, above the files that wait, are sent, or were refused.

import { byId, setText } from "../../shared/dom.js";
import { cleanName, formatPercent, onLanguage, t } from "../../language/i18n.js";

const IN_WORK = ["reading", "sending", "checking", "waiting"]; // what is told first
const OVER = ["ready", "failed", "duplicate"];
const SHOWN_WHEN_READY = 4000;

export class Tray {
  #files = new Map();
  #timer = null;

  /** `onDismiss()` is called when the user closes the tray. */
  constructor({ onDismiss }) {
    this.node = byId("tray");
    this.text = byId("tray-text");
    this.bar = byId("tray-progress");
    this.close = byId("tray-dismiss");
    this.close.addEventListener("click", () => (this.#files.clear(), onDismiss(), this.#draw()));
    onLanguage(() => this.#draw());
  }

  /** Note where a file is: `queued`, `checking`, `sending` (with `share`), `waiting` to be read, `reading` (with `document`), `ready`, `failed` or `duplicate`. */
  set(key, state, { name, share = null, document = null } = {}) {
    if (!this.#isBusy && !this.#files.has(key) && [...this.#files.values()].every((file) => file.state === "ready")) this.#files.clear();
    this.#files.set(key, { ...this.#files.get(key), state, share, document, ...(name ? { name: cleanName(name) } : {}) });
    this.#draw();
  }

  has(key) {
    return this.#files.has(key);
  }

  /** The user took the file back. */
  drop(key) {
    this.#files.delete(key);
    this.#draw();
  }

  get #isBusy() {
    return [...this.#files.values()].some(({ state }) => !OVER.includes(state));
  }

  #draw() {
    const files = [...this.#files.values()];
    const ready = files.filter(({ state }) => ["ready", "duplicate"].includes(state)).length;
    const notAdded = files.filter(({ state }) => state === "failed").length;
    const first = IN_WORK.map((state) => files.find((file) => file.state === state)).find(Boolean);
    this.node.hidden = !files.length;
    this.close.hidden = this.#isBusy;
    this.bar.hidden = !this.#isBusy;
    this.bar.value = files.length ? files.reduce((sum, file) => sum + shareOf(file), 0) / files.length : 0;
    const parts = [t("tray.ready", { ready, n: files.length }), notAdded ? t("tray.notAdded", { n: notAdded }) : "", first ? doing(first) : ""];
    setText(this.text, parts.filter(Boolean).join(t("tray.and")));
    clearTimeout(this.#timer);
    if (files.length && files.every(({ state }) => state === "ready")) this.#timer = setTimeout(() => (this.#files.clear(), this.#draw()), SHOWN_WHEN_READY);
  }
}

function doing({ state, name, share, document }) {
  if (state === "waiting") return t("tray.waiting");
  if (state === "checking") return t("tray.checking", { name });
  if (state === "sending") return t("tray.sending", { name, percent: formatPercent(share ?? 0) });
  const { done, total } = document?.progress ?? {};
  return total ? t(document.file_type === "pdf" ? "tray.readingPage" : "tray.readingPart", { name, done: Math.min(done + 1, total), total }) : t("tray.reading", { name });
}

/** How much of the work on a file is done: half of it is reading. */
function shareOf({ state, share, document }) {
  if (OVER.includes(state)) return 1;
  if (state === "sending") return (share ?? 0) / 2;
  const { done, total } = document?.progress ?? {};
  return ["waiting", "reading"].includes(state) ? 0.5 + (total ? done / total / 2 : 0) : 0;
}
