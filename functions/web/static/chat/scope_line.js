// The line above the question: what it is asked of, in words and as pills, and the way to ask the whole library once.

import { byId, el, setAttribute, setText } from "../shared/dom.js";
import { onLanguage, t } from "../shared/i18n.js";
import { icon } from "../shared/icons.js";

export class ScopeLine {
  constructor({ scope }) {
    this.scope = scope;
    this.text = byId("scope-text");
    this.pills = byId("scope-pills");
    this.once = byId("scope-once");
    this.once.addEventListener("click", () => (scope.once = !scope.once));
    for (const event of ["change", "renamed"]) scope.addEventListener(event, () => this.#draw());
    onLanguage(() => this.#draw());
    this.#draw();
  }

  #draw() {
    const { once, standing } = this.scope;
    setText(this.text, once ? t("scope.line.once") : standing.kind === "loading" ? t("loading") : t(`scope.line.${standing.kind}`));
    const pills = once ? [] : this.#pillsOf(standing);
    this.pills.hidden = pills.length === 0;
    this.pills.replaceChildren(...pills);
    this.once.hidden = ["library", "loading"].includes(standing.kind);
    setAttribute(this.once, "aria-pressed", once);
  }

  #pillsOf({ documents, place, isOwn }) {
    if (documents) return documents.map(([id, name]) => this.#pill({ name, "data-document-id": id }, () => this.scope.remove(id)));
    if (!place) return [];
    const { kind, id, name } = place;
    const attributes = { name: name || t(`${kind}.untitled`), "data-kind": kind, "data-place-id": id, symbol: kind };
    return [isOwn ? this.#pill({ ...attributes, title: t("scope.startedHere") }, null) : this.#pill(attributes, () => this.scope.setPlace(null))];
  }

  #pill({ name, symbol, title = name, ...attributes }, onRemove) {
    const remove = () => {
      onRemove();
      (this.pills.querySelector("button") ?? byId("question")).focus();
    };
    return el("li", { class: "pill", "data-testid": "scope-pill", ...attributes },
      symbol ? icon(symbol) : null,
      el("span", { class: "pill-name", title }, name),
      onRemove ? el("button", {
        type: "button", class: "pill-remove", "data-testid": "scope-pill-remove", "aria-label": t("scope.remove", { name }), on: { click: remove },
      }, icon("close")) : el("span", { class: "visually-hidden" }, ` ${title}`));
  }
}
