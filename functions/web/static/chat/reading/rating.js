// What the reader thinks of an answer: thumbs up or down, and why.

import { el, setAttribute } from "../../shared/dom.js";
import { t } from "../../language/i18n.js";
import { icon } from "../../shared/icons.js";
import { report, toast } from "../../shared/notices.js";

const KINDS = ["up", "down"];

/** `save(rating, reason)` keeps the judgement, and with null withdraws it. `reasonPlace` is where the reason is asked for. */
export class Rating {
  constructor({ rating, reason, save, reasonPlace }) {
    Object.assign(this, { rating, reason, save, reasonPlace });
    this.buttons = KINDS.map((kind) => el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": `rate-${kind}`, "aria-label": t(`rating.${kind}`), title: t(`rating.${kind}`),
      on: { click: () => this.#choose(kind) },
    }, icon(kind === "up" ? "thumbUp" : "thumbDown")));
    this.node = el("span", { class: "rating", role: "group", "aria-label": t("rating.title") }, this.buttons);
    this.#draw();
  }

  #draw() {
    KINDS.forEach((kind, at) => setAttribute(this.buttons[at], "aria-pressed", kind === this.rating));
  }

  async #choose(kind) {
    const next = this.rating === kind ? null : kind;
    if (!(await this.#keep(next, ""))) return;
    this.reasonPlace.replaceChildren(...(next ? [this.#reasonForm()] : []));
    const field = this.reasonPlace.querySelector("input");
    field?.focus({ preventScroll: true });
    field?.form.scrollIntoView({ block: "nearest" });
  }

  async #keep(rating, reason) {
    const before = this.rating;
    this.rating = rating;
    this.#draw();
    try {
      await this.save(rating, reason);
      this.reason = reason;
      return true;
    } catch (error) {
      this.rating = before;
      this.#draw();
      report(error, t("failed.rating"), () => this.#keep(rating, reason));
      return false;
    }
  }

  #reasonForm() {
    const field = el("input", { type: "text", class: "input", maxlength: "1000", "aria-label": t("rating.why"), placeholder: t(`rating.why.${this.rating}`), "data-testid": "rating-reason" });
    const close = () => {
      this.reasonPlace.replaceChildren();
      this.buttons[KINDS.indexOf(this.rating)]?.focus({ preventScroll: true });
    };
    const send = async (event) => {
      event.preventDefault();
      if (field.value.trim() && !(await this.#keep(this.rating, field.value.trim()))) return;
      close();
      toast(t("rating.thanks"));
    };
    return el("form", { class: "rating-form", "data-testid": "rating-form", on: { submit: send } }, field,
      el("button", { type: "submit", class: "button small", "data-testid": "rating-send" }, t("rating.send")),
      el("button", { type: "button", class: "button quiet icon-only small", "aria-label": t("close"), title: t("close"), on: { click: close } }, icon("close")));
  }
}
