// The card beside a citation mark that is pointed at or focused: the quote, its place, its check, and the other sources of the answer.

import { checkBadge, locationOf, nameOf } from "../chat/citations.js";
import { quoteLine } from "../chat/extracts.js";
import { byId, el } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";

const DELAY_MS = 180;
const MARGIN = 8;

export class SourceCard {
  #timer = null;
  #mark = null;
  #number = null;

  constructor({ onCite }) {
    this.onCite = onCite;
    this.node = el("div", { class: "source-card", id: "source-card", role: "group", "data-testid": "source-card", hidden: true });
    byId("view-chat").append(this.node);
    this.node.addEventListener("pointerenter", () => clearTimeout(this.#timer));
    this.node.addEventListener("pointerleave", () => this.#soon(() => this.hide()));
    document.addEventListener("scroll", () => this.hide(), { capture: true, passive: true });
    document.addEventListener("keydown", (event) => this.#onKey(event), { capture: true });
  }

  /** Show the card for this mark; `citations` are those of the answer. */
  attach(mark, citations) {
    const show = () => this.#show(mark, citations, Number(mark.dataset.number));
    mark.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && this.#soon(show));
    mark.addEventListener("pointerleave", () => this.#soon(() => this.hide()));
    mark.addEventListener("focus", () => mark.matches(":focus-visible") && show());
    mark.addEventListener("blur", () => this.#soon(() => this.hide()));
    mark.addEventListener("click", () => this.hide());
  }

  hide() {
    clearTimeout(this.#timer);
    this.node.hidden = true;
    this.#mark = null;
  }

  #soon(act) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, DELAY_MS);
  }

  #show(mark, citations, number) {
    clearTimeout(this.#timer);
    if (!mark.isConnected) return;
    Object.assign(this, { citations });
    this.#mark = mark;
    this.#number = number;
    const citation = citations.get(number);
    const open = () => {
      const opener = this.#mark;
      this.hide();
      this.onCite(citation, opener);
    };
    this.node.replaceChildren(
      el("button", { type: "button", class: "card-open", "data-testid": "source-card-open", on: { click: open } },
        el("span", { class: "source-line" }, el("span", { class: "source-name" }, nameOf(citation)), el("span", { class: "source-place" }, locationOf(citation))),
        el("span", { class: "card-quote" }, quoteLine(citation)),
        el("span", { class: "source-facts" }, checkBadge(citation))),
      citations.size > 1 ? this.#steps() : "");
    this.node.setAttribute("aria-label", t("citation.card"));
    this.node.hidden = false;
    this.#place();
  }

  #steps() {
    const numbers = [...this.citations.keys()];
    const at = numbers.indexOf(this.#number);
    const step = (name, testid, label, by) => el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": testid, "aria-label": label, title: label, disabled: !numbers[at + by], on: { click: () => this.#step(by) },
    }, icon(name));
    return el("div", { class: "card-steps" },
      step("left", "source-card-previous", t("citation.previous"), -1),
      el("span", { "data-testid": "source-card-count", role: "status" }, t("citation.count", { at: at + 1, n: numbers.length })),
      step("right", "source-card-next", t("citation.next"), 1));
  }

  #step(by) {
    const numbers = [...this.citations.keys()];
    const next = numbers[numbers.indexOf(this.#number) + by];
    if (next) this.#show(this.#mark, this.citations, next);
  }

  /** Escape hides the card; the arrows step through the sources while a mark has the focus. */
  #onKey(event) {
    if (this.node.hidden) return;
    const isHere = document.activeElement === this.#mark || this.node.contains(document.activeElement);
    const by = isHere && { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key !== "Escape" && !by) return;
    event.preventDefault();
    event.stopPropagation();
    if (by) this.#step(by);
    else this.hide();
  }

  /** Above the mark, or below it where there is no room. */
  #place() {
    const mark = this.#mark.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const left = Math.min(Math.max(MARGIN, mark.left - 24), innerWidth - width - MARGIN);
    const above = mark.top - height - MARGIN;
    this.node.style.left = `${left}px`;
    this.node.style.top = `${above >= MARGIN ? above : mark.bottom + MARGIN}px`;
  }
}
