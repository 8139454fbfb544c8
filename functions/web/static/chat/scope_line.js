// The line above the question box: the current search scope as text and pills, and the button for the whole library once.

import { byId, el, setAttribute, setText } from "../shared/dom.js";
import { cleanName, onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";

export class ScopeLine {
  constructor({ scope }) {
    this.scope = scope;
    this.text = byId("scope-text");
    this.pills = byId("scope-pills");
    this.onceButton = byId("scope-once");
    this.onceButton.addEventListener("click", () => (scope.wholeLibraryOnce = !scope.wholeLibraryOnce));
    for (const event of ["change", "renamed"]) scope.addEventListener(event, () => this.#draw());
    onLanguage(() => this.#draw());
    this.#draw();
  }

  #draw() {
    const { wholeLibraryOnce, current } = this.scope;
    setText(this.text, wholeLibraryOnce ? t("scope.line.once") : current.kind === "loading" ? t("loading") : t(`scope.line.${current.kind}`));
    const pills = wholeLibraryOnce ? [] : this.#pillsOf(current);
    this.pills.hidden = pills.length === 0;
    this.pills.replaceChildren(...pills);
    this.onceButton.hidden = ["library", "loading"].includes(current.kind);
    setAttribute(this.onceButton, "aria-pressed", wholeLibraryOnce);
  }

  #pillsOf({ documents, target, isOrigin }) {
    if (documents) return documents.map(([id, name]) => this.#pill({ name, "data-document-id": id }, () => this.scope.remove(id)));
    if (!target) return [];
    const { kind, id, name } = target;
    const attributes = { name: cleanName(name) || t(`${kind}.untitled`), "data-kind": kind, "data-place-id": id, symbol: kind };
    return [isOrigin ? this.#pill({ ...attributes, title: t("scope.startedHere") }, null) : this.#pill(attributes, () => this.scope.setTarget(null))];
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
