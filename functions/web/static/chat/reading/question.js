// The question of a turn: its text, its earlier and later versions, and the form in which it is edited and asked again.

import { el } from "../../shared/dom.js";
import { t } from "../../language/i18n.js";
import { icon } from "../../shared/icons.js";

export class QuestionHead {
  /** `onEdit(question)` asks an edited question in place of this one; null: it cannot be edited. `onStep(by)` shows another version. */
  constructor(question, { onEdit, onStep }) {
    Object.assign(this, { question, onEdit, onStep });
    this.node = el("header", { class: "question-head" });
    this.versions = { at: 0, count: 1 };
    this.draw();
  }

  /** Say which of how many versions this one is. */
  setVersions(at, count) {
    this.versions = { at, count };
    this.draw();
  }

  draw() {
    const edit = this.onEdit ? iconButton("edit", "question-edit", t("chat.edit"), () => this.#edit()) : null;
    if (edit) edit.classList.add("last-only");
    this.node.replaceChildren(
      el("h2", { class: "question-text", "data-testid": "question-text" }, this.question),
      ...[edit, this.versions.count > 1 ? this.#steps() : null].filter(Boolean));
  }

  #steps() {
    const { at, count } = this.versions;
    const step = (name, testid, words, by, isThere) => {
      const button = iconButton(name, testid, words, () => this.onStep(by));
      button.disabled = !isThere;
      return button;
    };
    return el("div", { class: "versions", role: "group", "aria-label": t("chat.versions") },
      step("left", "version-previous", t("chat.versionBefore"), -1, at > 0),
      el("span", { role: "status", "data-testid": "version-count" }, t("citation.count", { at: at + 1, n: count })),
      step("right", "version-next", t("chat.versionAfter"), 1, at < count - 1));
  }

  #edit() {
    const box = el("textarea", { class: "input", rows: "2", maxlength: "4000", "aria-label": t("chat.question"), "data-testid": "question-edit-text", value: this.question });
    const close = () => {
      this.draw();
      this.node.querySelector("[data-testid=question-edit]")?.focus({ preventScroll: true });
    };
    const send = () => {
      if (box.value.trim()) this.onEdit(box.value.trim());
    };
    box.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey))) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Escape") close();
      else send();
    });
    this.node.replaceChildren(el("form", { class: "question-form", on: { submit: (event) => (event.preventDefault(), send()) } },
      box,
      el("p", { class: "hint" }, t("chat.editHint")),
      el("div", { class: "question-actions" },
        el("button", { type: "button", class: "button small", on: { click: close } }, t("cancel")),
        el("button", { type: "submit", class: "button primary small", "data-testid": "question-edit-send" }, t("chat.askAgain")))));
    box.focus();
  }
}

function iconButton(name, testid, words, click) {
  return el("button", { type: "button", class: "button quiet icon-only small", "data-testid": testid, "aria-label": words, title: words, on: { click } }, icon(name));
}
