// The pane that shows a page: of a citation, of a link, or of a document that is read. It never covers the conversation.

import { checkBadge, nameOf, locationOf, scoreText, stateBadge } from "../chat/citations.js";
import { drawQuote } from "../chat/extracts.js";
import { byId, el, setAttribute } from "../shared/dom.js";
import { onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { togglePage } from "../shared/panes.js";
import { clearClaims, tintClaims } from "./claims.js";
import { PageView, addressOf } from "./page_view.js";

const LONG_QUOTE = 280;

export class SourcePanel {
  #opener = null;
  #citation = null;
  #view = null;
  #opens = 0;

  /** `onOpenNote(id)` opens the editor of a cited note, `onOpenDocument(id)` the details of a document. */
  constructor({ api, onOpenNote, onOpenDocument, onClose }) {
    Object.assign(this, { api, onOpenNote, onOpenDocument, onClose });
    this.pane = byId("source");
    document.addEventListener("keydown", (event) => {
      const modal = document.querySelector("dialog.modal[open]");
      if (event.key !== "Escape" || !this.isOpen || modal || event.defaultPrevented) return;
      if (this.#view?.fold()) event.preventDefault(); // which would empty a search field
      else this.close();
    });
    onLanguage(() => this.isOpen && this.open(this.#citation, this.#opener));
  }

  /** Show a citation, or the target of a link, which has no number and no check. Closing returns the focus to `opener`. */
  open(citation, opener) {
    const opening = ++this.#opens;
    clearClaims();
    this.#opener = opener;
    this.#citation = citation;
    if (!opener?.matches(".citation")) opener?.setAttribute("data-open", "");
    if (citation.number) tintClaims(citation, opener);
    this.#view?.close();
    this.#view = citation.state === "deleted" ? null : new PageView({ api: this.api, citation });
    this.pane.replaceChildren(...[
      this.#head(citation), this.#quote(citation), translation(citation), this.#newerVersionHint(citation), this.#view ? this.#view.node : deletedNote(citation),
    ].filter(Boolean));
    this.pane.hidden = false;
    togglePage(true);
    byId("source-file").focus({ preventScroll: true });
    if (this.#view) this.#load(opening);
  }

  /** Tint the claims again, after an answer was drawn. */
  tint() {
    if (this.isOpen && this.#citation.number) tintClaims(this.#citation, this.#opener);
  }

  get isOpen() {
    return !this.pane.hidden;
  }

  close() {
    if (!this.isOpen) return;
    this.#opens += 1;
    this.pane.hidden = true;
    togglePage(false);
    this.onClose();
    this.#view?.close();
    this.#view = null;
    clearClaims();
    if (this.#opener?.isConnected) this.#opener.focus({ preventScroll: true });
    else byId("question").focus({ preventScroll: true });
  }

  async #load(opening) {
    const view = this.#view;
    const loading = this.api.get(addressOf(this.#citation));
    view.show();
    try {
      const { page_count: count } = await loading;
      if (opening === this.#opens && count) view.setCount(count);
    } catch (error) {
      if (opening === this.#opens && error.status === 404) this.#showDeleted(view);
    }
  }

  /** The document or the note was deleted, so only the quote remains. */
  #showDeleted(view) {
    view.close();
    view.node.replaceWith(deletedNote(this.#citation));
    this.pane.querySelector("[data-testid=source-open-note]")?.remove();
  }

  #head(citation) {
    const score = scoreText(citation);
    const close = el("button", {
      type: "button", class: "button quiet source-close", "data-testid": "source-close", "aria-label": `${t("source.back")}: ${t("source.close")}`, title: t("source.close"), on: { click: () => this.close() },
    }, icon("close"), el("span", { class: "back" }, icon("left"), t("source.back")));
    const where = [locationOf(citation), citation.section_title].filter(Boolean).join(" · ");
    return el("div", { class: "source-head" },
      citation.number ? el("span", { class: "source-number", "aria-hidden": "true" }, String(citation.number)) : null,
      el("div", { class: "source-titles" },
        el("h2", { id: "source-file", class: "source-file", "data-testid": "source-file", tabindex: "-1" }, nameOf(citation) || t("source.unknown")),
        el("p", { class: "source-place", "data-testid": "source-place" }, where),
        el("p", { class: "source-facts" }, citation.check ? checkBadge(citation) : null, stateBadge(citation), score ? el("span", { class: "score", "data-testid": "source-score" }, score) : null)),
      citation.source === "note" && citation.state !== "deleted" ? this.#openNote(citation) : null,
      citation.isReading ? this.#openDetails(citation) : null,
      close);
  }

  #openNote({ document_id: id }) {
    const open = () => this.onOpenNote(id);
    return el("button", { type: "button", class: "button quiet icon-only", "data-testid": "source-open-note", "aria-label": t("note.open"), title: t("note.open"), on: { click: open } }, icon("edit"));
  }

  #openDetails({ document_id: id }) {
    const open = () => this.onOpenDocument(id);
    return el("button", { type: "button", class: "button quiet icon-only", "data-testid": "source-details", "aria-label": t("document.details"), title: t("document.details"), on: { click: open } }, icon("info"));
  }

  /** A hint that a newer version exists, with a button to open it. */
  #newerVersionHint({ state, superseded_by: id }) {
    if (state !== "superseded" || !id) return null;
    const open = () => this.onOpenDocument(id);
    return el("p", { class: "note source-note", "data-testid": "source-superseded" }, icon("alert"),
      el("span", {}, t("source.superseded")),
      el("button", { type: "button", class: "button small", "data-testid": "source-open-newer", on: { click: open } }, t("source.openNewer")));
  }

  #quote(citation) {
    if (!citation.quote && !citation.snippet_preview) return null;
    const quote = el("blockquote", { class: "source-quote", id: "source-quote", "data-testid": "source-quote" }, drawQuote(citation));
    if ((citation.quote ?? "").length <= LONG_QUOTE) return el("div", { class: "source-quote-area" }, quote);
    const toggle = el("button", { type: "button", class: "button quiet small", "data-testid": "source-quote-toggle", "aria-controls": "source-quote" });
    const fold = (folded) => {
      quote.classList.toggle("folded", folded);
      setAttribute(toggle, "aria-expanded", !folded);
      toggle.textContent = t(folded ? "source.more" : "source.less");
    };
    toggle.addEventListener("click", () => fold(!quote.classList.contains("folded")));
    fold(true);
    return el("div", { class: "source-quote-area" }, quote, toggle);
  }
}

/** The translation of the passage, folded: what was quoted is the original. */
function translation({ translation: text }) {
  if (!text) return null;
  return el("details", { class: "source-translation", "data-testid": "source-translation" },
    el("summary", {}, t("source.translation")), el("p", {}, text));
}

function deletedNote({ source, number }) {
  const words = !number ? "source.linkGone" : source === "note" ? "source.noteGone" : "source.gone";
  return el("p", { class: "note gone", "data-testid": "source-gone" }, icon("alert"), t(words));
}
