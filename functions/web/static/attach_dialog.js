// Choosing the documents a question is asked of.

import { el, setText } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { drawBadge, metaOf } from "./document_row.js";
import { t } from "./i18n.js";
import { inWords } from "./notices.js";

const PAGE = 50;
const canBeAsked = ({ status }) => ["indexed", "reindexing"].includes(status);

export function openAttachDialog({ api, scope }) {
  new AttachDialog(api, scope).load();
}

class AttachDialog {
  #cursor = null;
  #loads = 0;
  #timer = null;

  constructor(api, scope) {
    Object.assign(this, { api, scope });
    this.filter = el("input", {
      type: "search", class: "input", "data-testid": "attach-filter", placeholder: t("library.filter"), "aria-label": t("library.filter"),
      on: { input: () => this.#filterSoon() },
    });
    this.onlyIndexed = el("input", { type: "checkbox", checked: true, "data-testid": "attach-only-indexed", on: { change: () => this.load() } });
    this.list = el("ul", { class: "choices" });
    this.note = el("p", { class: "hint", role: "status" });
    this.more = el("button", { type: "button", class: "button quiet wide", hidden: true, "data-testid": "attach-more", on: { click: () => this.load({ next: true }) } }, t("more"));
    const done = el("button", { type: "button", class: "button primary", "data-testid": "attach-done", on: { click: () => this.dialog.close() } }, t("done"));
    const clear = el("button", { type: "button", class: "button quiet", on: { click: () => this.#clear() } }, t("scope.clear"));
    this.dialog = openDialog({
      testid: "attach-dialog", title: t("scope.dialog"),
      body: [
        el("p", { class: "hint" }, t("scope.explain")),
        el("div", { class: "attach-filters" }, this.filter, el("label", { class: "check" }, this.onlyIndexed, t("scope.onlyIndexed"))),
        this.list, this.note, this.more,
      ],
      actions: [clear, el("span", { class: "spacer" }), done],
    });
    this.filter.focus();
  }

  async load({ next = false } = {}) {
    const load = ++this.#loads;
    const query = {
      title: this.filter.value.trim(), limit: PAGE, cursor: next ? this.#cursor : null, status: this.onlyIndexed.checked ? "indexed" : null,
    };
    try {
      const page = await this.api.get("/documents", query);
      if (load !== this.#loads) return;
      if (!next) this.list.replaceChildren();
      this.list.append(...page.items.map((document) => this.#choice(document)));
      this.#cursor = page.next_cursor;
      this.more.hidden = !this.#cursor;
      setText(this.note, this.list.childElementCount ? "" : t(query.title ? "library.none" : "scope.nothing"));
    } catch (error) {
      setText(this.note, inWords(error));
    }
  }

  #choice(document) {
    const box = el("input", {
      type: "checkbox", checked: this.scope.has(document.id), disabled: !canBeAsked(document),
      on: { change: () => (box.checked ? this.scope.add(document) : this.scope.remove(document.id)) },
    });
    const badge = el("span", { class: "badge" });
    drawBadge(badge, document);
    return el("li", {},
      el("label", { class: "choice", "data-testid": "attach-option", "data-document-id": document.id, "data-status": document.status },
        box,
        el("span", { class: "choice-text" },
          el("span", { class: "document-title" }, document.title || document.file_name),
          el("span", { class: "document-line" }, badge, el("span", { class: "document-meta" }, metaOf(document))))));
  }

  #clear() {
    this.scope.clear();
    for (const box of this.list.querySelectorAll("input")) box.checked = false;
  }

  #filterSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.load(), 220);
  }
}
