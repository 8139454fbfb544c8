// The line above the lists of the library: titles are filtered as one types, a form filters the documents, Enter searches the text.

import { byId, setAttribute, setText } from "../../shared/dom.js";
import { onLanguage, t } from "../../language/i18n.js";
import { openPart } from "../../shared/notices.js";

const FILTERS = new URL("./filters.js", import.meta.url);
const PASSAGES = new URL("./passages.js", import.meta.url);
const TYPING_PAUSE = 220;

export class SearchBar {
  #timer = null;

  /**
   * `onTitle()` is called when other titles are wanted, `onFilters(filters)` when other documents are, `onOpen(source, opener)` when a
   * passage is to be shown; `notebook()` returns the id of the notebook to search, or null.
   */
  constructor({ api, notebook, onTitle, onFilters, onOpen }) {
    Object.assign(this, { api, notebook, onTitle, onFilters, onOpen });
    this.field = byId("title-filter");
    this.form = byId("filters");
    this.field.addEventListener("input", () => this.#typed());
    this.field.addEventListener("keydown", ({ key }) => key === "Enter" && this.#searchText());
    byId("search-text").addEventListener("click", () => this.#searchText());
    byId("filter-open").addEventListener("click", () => this.#toggleFilters());
    onLanguage(() => (this.leavePassages(), this.form.hasChildNodes() && this.#drawFilters()));
  }

  get title() {
    return this.field.value.trim();
  }

  clear() {
    this.field.value = "";
    this.leavePassages();
  }

  /** Show the passages that are nearest to a question, which is no title and so not written into the field. */
  showNearest(question) {
    this.#searchText(question);
  }

  /** Show the lists again, in place of the passages. */
  leavePassages() {
    this.#showPassages(false);
    byId("passages").replaceChildren();
    byId("search-text").hidden = !this.title;
    setText(byId("search-text-words"), t("passages.search", { query: this.title }));
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.onTitle(), TYPING_PAUSE);
    this.leavePassages();
  }

  #searchText(query = this.title) {
    const { api, onOpen } = this;
    if (!query) return;
    this.#showPassages(true);
    const onClose = () => (this.leavePassages(), this.field.focus());
    openPart(PASSAGES, (part) => part.showPassages(byId("passages"), { api, query, notebookId: this.notebook(), onOpen, onClose }));
  }

  #showPassages(isShown) {
    byId("passages").hidden = !isShown;
    byId("lists").hidden = isShown;
    byId("search-text").hidden = isShown;
  }

  /** The form keeps what was chosen while it is folded. */
  async #toggleFilters() {
    const isOpen = this.form.hidden;
    this.form.hidden = !isOpen;
    setAttribute(byId("filter-open"), "aria-expanded", isOpen);
    if (isOpen && !this.form.hasChildNodes()) await this.#drawFilters();
    if (isOpen) this.form.querySelector("select")?.focus();
  }

  #drawFilters() {
    const onChange = (filters) => {
      const isInUse = Object.values(filters).some((value) => (Array.isArray(value) ? value.length : value));
      byId("filter-open").classList.toggle("in-use", isInUse);
      this.onFilters(filters);
    };
    return openPart(FILTERS, (part) => part.drawFilters(this.form, { onChange }));
  }
}
