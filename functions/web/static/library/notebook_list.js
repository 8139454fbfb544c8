// The list of places in the library: everything, each notebook, the trash.

import { byId, el, focusIfLost, setAttribute, setText } from "../shared/dom.js";
import { cleanName, formatNumber, onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { editTitle } from "../shared/inline_title.js";
import { openPart, report } from "../shared/notices.js";
import { EVERYTHING, TRASH } from "./notebooks.js";
import { RowList } from "../shared/lists/row_list.js";

const NOTEBOOK_FORM = new URL("../notebooks/notebook_form.js", import.meta.url);

export class NotebookList {
  constructor({ notebooks }) {
    this.notebooks = notebooks;
    this.list = byId("notebooks");
    this.add = byId("notebook-new");
    this.rows = new RowList({
      feed: notebooks, path: "/notebooks", list: this.list, more: byId("notebooks-more"), order: "updated_at", loadsOnScroll: true, focusFallback: this.add,
      makeRow: (item) => new NotebookRow(item, notebooks), belongs: () => true,
      onChange: () => this.#mark(), onError: (error) => report(error, t("failed.notebooks")),
    });
    byId("place-all").addEventListener("click", () => notebooks.choose(EVERYTHING));
    byId("place-trash").addEventListener("click", () => notebooks.choose(TRASH));
    this.add.addEventListener("click", () => this.#create());
    notebooks.addEventListener("choose", () => this.#mark());
    onLanguage(() => this.rows.redraw());
  }

  async load() {
    try {
      const items = await this.rows.fetch({}, { limit: 100 });
      if (items) this.rows.show(items);
    } catch (error) {
      report(error, t("failed.notebooks"), () => this.load());
    }
  }

  /** Add a row with a title field; the notebook is created once the title is entered. */
  async #create() {
    if (this.list.querySelector(".place.new")) return;
    const row = el("li", { class: "place new" });
    this.list.prepend(row);
    this.list.scrollTop = 0;
    const title = await editTitle(row, { label: t("notebook.title"), testid: "notebook-title-input" });
    if (title) await this.notebooks.create(title);
    row.remove();
    focusIfLost(this.list.querySelector(".place-open[aria-current]") ?? this.add);
  }

  #mark() {
    const { kind } = this.notebooks.place;
    setAttribute(byId("place-all"), "aria-current", kind === "all" ? "true" : null);
    setAttribute(byId("place-trash"), "aria-current", kind === "trash" ? "true" : null);
    for (const row of this.list.querySelectorAll("[data-notebook-id]")) {
      setAttribute(row.querySelector(".place-open"), "aria-current", row.dataset.notebookId === this.notebooks.chosen ? "true" : null);
    }
  }
}

class NotebookRow {
  constructor(item, notebooks) {
    this.notebooks = notebooks;
    this.name = el("span", { class: "place-name" });
    this.count = el("span", { class: "place-count", "aria-hidden": "true" });
    this.holds = el("span", { class: "visually-hidden" });
    this.open = el("button", { type: "button", class: "place-open", "data-testid": "notebook-open", on: { click: () => notebooks.chooseNotebook(this.item) } },
      icon("notebook"), this.name, this.count, this.holds);
    this.edit = this.#button("edit", "notebook-rename", () => this.#rename());
    this.answers = this.#button("settings", "notebook-answers", () => this.#openForm());
    this.remove = this.#button("delete", "notebook-delete", () => notebooks.remove(this.item));
    this.parts = [this.open, el("div", { class: "place-actions" }, this.answers, this.edit, this.remove)];
    this.node = el("li", { class: "place", "data-testid": "notebook-row", "data-notebook-id": item.id }, this.parts);
    this.update(item);
  }

  draw() {} // a notebook is drawn at once: few have many

  update(item) {
    this.item = item;
    this.notebooks.remember(item);
    const { note_count: notes, document_count: documents } = item;
    const title = cleanName(item.title);
    setText(this.name, title);
    setAttribute(this.name, "title", title);
    setText(this.count, formatNumber(notes + documents));
    setText(this.holds, t("notebook.holds", { notes: t("count.notes", { n: notes }), documents: t("count.documents", { n: documents }) }));
    for (const [button, key] of [[this.answers, "notebook.answers"], [this.edit, "notebook.rename"], [this.remove, "notebook.delete"]]) {
      setAttribute(button, "aria-label", t(key, { title }));
      setAttribute(button, "title", t(key, { title }));
    }
  }

  #button(name, testid, click) {
    return el("button", { type: "button", class: "button quiet icon-only small", "data-testid": testid, on: { click } }, icon(name));
  }

  #openForm() {
    const { api } = this.notebooks;
    return openPart(NOTEBOOK_FORM, (part) => part.openNotebookForm({ api, notebook: this.item, onSave: (saved) => this.notebooks.changed(saved) }));
  }

  async #rename() {
    const title = await editTitle(this.node, { value: this.item.title, label: t("notebook.title"), testid: "notebook-title-input" });
    this.node.replaceChildren(...this.parts);
    focusIfLost(this.edit);
    if (title) await this.notebooks.rename(this.item, title);
  }
}
