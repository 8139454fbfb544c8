// A dialog to choose documents from the library, for the search scope or as attachments of a note.

import { openDialog } from "../shared/dialogs.js";
import { el, setText } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { errorText } from "../shared/notices.js";
import { Pager } from "../shared/pager.js";
import { drawBadge } from "../shared/status.js";
import { metaOf } from "./document_row.js";
import { isSearchable, titleOf } from "./documents.js";

const PAGE = 50;
const FILTER_DELAY = 220;

export function openAttachDialog({ api, scope }) {
  openDocumentPicker({
    api, title: t("scope.chooseTitle"), explain: t("scope.chooseExplain"), onlySearchable: true,
    isChosen: (document) => scope.has(document.id),
    choose: (document) => scope.add(document),
    release: (document) => scope.remove(document.id),
    clear: () => scope.clear(),
  });
}

/** `choose(document)` and `release(document)` resolve to whether the server accepted the change. */
export function openDocumentPicker(options) {
  new DocumentPicker(options).load();
}

class DocumentPicker {
  #timer = null;

  constructor({ api, title, explain, onlySearchable, isChosen, choose, release, clear = null }) {
    Object.assign(this, { onlySearchable, isChosen, choose, release });
    this.pager = new Pager({ api, path: "/documents" });
    this.filter = el("input", {
      type: "search", class: "input", "data-testid": "attach-filter", placeholder: t("library.filter"), "aria-label": t("library.filter"),
      on: { input: () => this.#filterSoon() },
    });
    this.onlyIndexed = el("input", { type: "checkbox", checked: true, "data-testid": "attach-only-indexed", on: { change: () => this.load() } });
    this.list = el("ul", { class: "choices" });
    this.note = el("p", { class: "hint", role: "status" });
    this.more = el("button", { type: "button", class: "button quiet wide", hidden: true, "data-testid": "attach-more", on: { click: () => this.load({ next: true }) } }, t("more"));
    const done = el("button", { type: "button", class: "button primary", "data-testid": "attach-done", on: { click: () => this.dialog.close() } }, t("done"));
    const clearSelection = async () => {
      const chosen = [...this.list.querySelectorAll("input:checked")];
      for (const box of chosen) box.checked = false;
      if (!(await clear())) for (const box of chosen) box.checked = true;
    };
    this.dialog = openDialog({
      testid: "attach-dialog", title,
      body: [
        el("p", { class: "hint" }, explain),
        el("div", { class: "attach-filters" }, this.filter, el("label", { class: "check" }, this.onlyIndexed, t("scope.onlyIndexed"))),
        this.list, this.note, this.more,
      ],
      actions: [
        clear ? el("button", { type: "button", class: "button quiet", on: { click: clearSelection } }, t("scope.clear")) : null,
        el("span", { class: "spacer" }), done,
      ],
    });
    this.filter.focus();
  }

  async load({ next = false } = {}) {
    const query = { title: this.filter.value.trim(), limit: PAGE, status: this.onlyIndexed.checked ? "indexed" : null };
    try {
      const items = await this.pager.load(query, { next });
      if (!items) return;
      if (!next) this.list.replaceChildren();
      this.list.append(...items.map((document) => this.#choice(document)));
      this.more.hidden = !this.pager.hasMore;
      setText(this.note, this.list.childElementCount ? "" : t(query.title ? "library.noMatch" : "scope.nothing"));
    } catch (error) {
      setText(this.note, errorText(error));
    }
  }

  #choice(document) {
    const change = async () => {
      const wanted = box.checked;
      if (!(await (wanted ? this.choose(document) : this.release(document)))) box.checked = !wanted;
    };
    const box = el("input", {
      type: "checkbox", checked: this.isChosen(document), disabled: this.onlySearchable && !isSearchable(document), on: { change },
    });
    const badge = el("span", { class: "badge" });
    drawBadge(badge, document);
    return el("li", {},
      el("label", { class: "choice", "data-testid": "attach-option", "data-document-id": document.id, "data-status": document.status },
        box,
        el("span", { class: "choice-text" },
          el("span", { class: "document-title" }, titleOf(document)),
          el("span", { class: "document-line" }, badge, el("span", { class: "document-meta" }, metaOf(document))))));
  }

  #filterSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.load(), FILTER_DELAY);
  }
}
