// What the next question is asked of, shown as pills above it: documents chosen by hand, else a notebook or a note, else
// what the conversation began with.

import { byId, el } from "./dom.js";
import { icon } from "./icons.js";
import { onLanguage, t } from "./i18n.js";

export class Scope extends EventTarget {
  #documents = new Map();
  #home = null;
  #place = null;
  #own = null;

  constructor() {
    super();
    this.list = byId("scope-pills");
    onLanguage(() => this.#draw());
  }

  /** What a question says of it. */
  get query() {
    if (this.#documents.size) return { document_ids: [...this.#documents.keys()] };
    return this.#place ? { [`${this.#place.kind}_id`]: this.#place.id } : {};
  }

  /** The notebook or note that a question is asked of, `{kind, id, name}`, or null. */
  get place() {
    return this.#documents.size ? null : this.#place;
  }

  has(id) {
    return this.#documents.has(id);
  }

  isPlace(id) {
    return this.#place?.id === id;
  }

  add(document) {
    this.#documents.set(document.id, document.title || document.file_name);
    this.#changed();
  }

  remove(id) {
    if (this.#documents.delete(id)) this.#changed();
  }

  toggle(document) {
    if (this.has(document.id)) this.remove(document.id);
    else this.add(document);
  }

  /** Ask a notebook or a note, `{kind, id, name}`; null asks everything. */
  setPlace(place) {
    this.#place = place;
    this.#documents.clear();
    this.#changed();
  }

  /** The place that new conversations begin with. */
  setHome(place) {
    this.#home = place;
    this.setPlace(place);
  }

  /** A notebook or a note has another name. */
  rename(id, name) {
    for (const place of [this.#home, this.#place, this.#own]) if (place?.id === id) place.name = name;
    this.#draw();
  }

  /** A notebook or a note is gone. */
  release(id) {
    if (![this.#home, this.#place, this.#own].some((place) => place?.id === id)) return;
    const kept = (place) => (place?.id === id ? null : place);
    [this.#home, this.#place, this.#own] = [this.#home, this.#place, this.#own].map(kept);
    this.#changed();
  }

  /** What the current conversation began with: its questions go there when nothing else is chosen. */
  bind(place) {
    this.#own = place;
    this.#changed();
  }

  /** Another conversation: a new one begins where the library is open, an earlier one goes on as it was. */
  reset({ isNew }) {
    this.#own = null;
    this.setPlace(isNew ? this.#home : null);
  }

  clear() {
    this.#documents.clear();
    this.#changed();
  }

  #changed() {
    this.#draw();
    this.dispatchEvent(new Event("change"));
  }

  #draw() {
    const pills = [...this.#documents].map(([id, name]) => this.#pill({ name, "data-document-id": id }, () => this.remove(id)));
    const place = this.#place ?? this.#own;
    if (!pills.length && place) pills.push(this.#placePill(place));
    this.list.hidden = pills.length === 0;
    this.list.replaceChildren(...pills);
  }

  #placePill({ kind, id, name }) {
    const attributes = { name: name || t(`${kind}.untitled`), "data-kind": kind, "data-place-id": id, symbol: kind };
    if (this.#own?.id === id) return this.#pill({ ...attributes, title: t("scope.own") }, null);
    return this.#pill(attributes, () => this.setPlace(null));
  }

  #pill({ name, symbol, title = name, ...attributes }, onRemove) {
    const remove = () => {
      onRemove();
      (this.list.querySelector("button") ?? byId("question")).focus();
    };
    return el("li", { class: "pill", "data-testid": "scope-pill", ...attributes },
      symbol ? icon(symbol) : null,
      el("span", { class: "pill-name", title }, name),
      onRemove ? el("button", {
        type: "button", class: "pill-remove", "data-testid": "scope-pill-remove", "aria-label": t("scope.remove", { name }), on: { click: remove },
      }, icon("close")) : el("span", { class: "visually-hidden" }, ` ${title}`));
  }
}
