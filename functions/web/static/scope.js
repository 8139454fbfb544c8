// What the next question is asked of: documents chosen by hand, shown as pills above the question.

import { byId, el } from "./dom.js";
import { icon } from "./icons.js";
import { onLanguage, t } from "./i18n.js";

export class Scope extends EventTarget {
  #chosen = new Map();

  constructor() {
    super();
    this.list = byId("scope-pills");
    onLanguage(() => this.#draw());
  }

  get ids() {
    return [...this.#chosen.keys()];
  }

  has(id) {
    return this.#chosen.has(id);
  }

  add(document) {
    this.#chosen.set(document.id, document.title || document.file_name);
    this.#changed();
  }

  remove(id) {
    if (this.#chosen.delete(id)) this.#changed();
  }

  toggle(document) {
    if (this.has(document.id)) this.remove(document.id);
    else this.add(document);
  }

  clear() {
    if (!this.#chosen.size) return;
    this.#chosen.clear();
    this.#changed();
  }

  #changed() {
    this.#draw();
    this.dispatchEvent(new Event("change"));
  }

  #draw() {
    this.list.hidden = this.#chosen.size === 0;
    this.list.replaceChildren(...[...this.#chosen].map(([id, name]) => this.#pill(id, name)));
  }

  #pill(id, name) {
    const remove = () => {
      this.remove(id);
      (this.list.querySelector("button") ?? byId("question")).focus();
    };
    return el("li", { class: "pill", "data-testid": "scope-pill", "data-document-id": id },
      el("span", { class: "pill-name", title: name }, name),
      el("button", {
        type: "button", class: "pill-remove", "data-testid": "scope-pill-remove", "aria-label": t("scope.remove", { name }), on: { click: remove },
      }, icon("close")));
  }
}
