// The sections of the document that is read, as a list that leads to them.

import { el } from "../shared/dom.js";
import { cleanName, t } from "../language/i18n.js";
import { faultBox } from "../shared/notices.js";

export class Outline {
  #isLoaded = false;

  /** `onChoose({page, start, end})` shows a section; `end` is null where only its page is known. `onClose()` is called when the list is closed. */
  constructor({ api, address, paged, onChoose, onClose }) {
    Object.assign(this, { api, address, paged, onChoose, onClose });
    this.node = el("nav", { class: "outline", "aria-label": t("outline.title"), "data-testid": "outline", hidden: true });
  }

  async open() {
    this.node.hidden = false;
    if (!this.#isLoaded) await this.#load();
    this.node.querySelector("button")?.focus();
  }

  close() {
    this.node.hidden = true;
    this.onClose();
  }

  async #load() {
    this.node.replaceChildren(el("p", { class: "hint", role: "status" }, t("loading")));
    try {
      const { sections } = await this.api.get(`${this.address}/outline`);
      this.#isLoaded = true;
      this.node.replaceChildren(sections.length ? el("ol", {}, sections.map((section) => this.#line(section))) : el("p", { class: "hint", role: "status" }, t("outline.empty")));
    } catch (error) {
      this.node.replaceChildren(faultBox(error, { what: t("failed.outline"), onRetry: () => this.#load() }));
    }
  }

  #line(section) {
    return el("li", {}, el("button", { type: "button", class: "outline-line", "data-testid": "outline-line", on: { click: () => this.onChoose(section) } },
      el("span", { class: "outline-title" }, cleanName(section.title)), el("span", { class: "outline-page" }, t(this.paged ? "location.page" : "location.part", { page: section.page }))));
  }
}
