// Finds words in the document that is read, and steps through the places.

import { el, setText } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { errorText } from "../shared/notices.js";

const TYPING_PAUSE = 250;

export class FindBar {
  #matches = [];
  #at = 0;
  #timer = null;
  #finds = 0;

  /** `address` is that of the document, `onFound({page, start, end})` shows a place, `onClose()` is called when the bar is closed. */
  constructor({ api, address, onFound, onClose }) {
    Object.assign(this, { api, address, onFound, onClose });
    this.field = el("input", {
      type: "search", class: "input small", "data-testid": "find-field", "aria-label": t("find.title"), placeholder: t("find.title"), enterkeyhint: "search",
      on: { input: () => this.#typed(), keydown: (event) => this.#onKey(event) },
    });
    this.count = el("span", { class: "find-count", role: "status", "data-testid": "find-count" });
    const button = (name, testid, label, click) => el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": testid, "aria-label": label, title: label, on: { click },
    }, icon(name));
    this.node = el("div", { class: "find-bar", role: "search", hidden: true }, this.field, this.count,
      button("left", "find-previous", t("find.previous"), () => this.#step(-1)), button("right", "find-next", t("find.next"), () => this.#step(1)),
      button("close", "find-close", t("close"), () => this.close()));
  }

  open() {
    this.node.hidden = false;
    this.field.select();
    this.field.focus();
  }

  close() {
    this.node.hidden = true;
    this.onClose();
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#find(), TYPING_PAUSE);
  }

  async #find() {
    const find = ++this.#finds;
    const q = this.field.value.trim();
    try {
      const { matches, has_more: hasMore } = q ? await this.api.get(`${this.address}/find`, { q }) : { matches: [] };
      if (find !== this.#finds) return;
      this.#matches = matches;
      this.hasMore = hasMore;
      this.#show(0);
    } catch (error) {
      if (find === this.#finds) setText(this.count, errorText(error));
    }
  }

  #step(by) {
    const { length } = this.#matches;
    if (length) this.#show((this.#at + by + length) % length);
  }

  #show(at) {
    this.#at = at;
    const { length: n } = this.#matches;
    const words = n ? t(this.hasMore ? "find.countMore" : "find.count", { at: at + 1, n }) : this.field.value.trim() ? t("find.none") : "";
    setText(this.count, words);
    if (n) this.onFound(this.#matches[at]);
  }

  #onKey(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    this.#step(event.shiftKey ? -1 : 1);
  }
}
