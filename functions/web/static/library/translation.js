// How far the translation of a document is, which goes on while the document can be searched, and a button that asks for it again.

import { el, setText } from "../shared/dom.js";
import { textOrNull, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { report } from "../shared/notices.js";
import { isSearchable, titleOf } from "./documents.js";

const POLL_MS = 1500;

export class Translation {
  #found = null;
  #timer = null;

  constructor({ api, documents }) {
    Object.assign(this, { api, documents });
    this.text = el("p", { role: "status" });
    this.button = el("button", { type: "button", class: "button small", "data-testid": "document-translate", on: { click: () => this.#again() } },
      icon("retry"), t("translation.again"));
    this.node = el("section", { class: "translation", "data-testid": "document-translation", hidden: true },
      el("h3", { class: "section-title" }, t("translation.title")), this.text, this.button);
  }

  /** Show the state of this document, and follow it until the translation has ended. */
  update(document) {
    this.document = document;
    this.#found = document.health?.translation ?? this.#found; // what answers a change leaves it out
    const state = this.#found && stateOf(this.#found);
    this.node.hidden = !state;
    if (!state) return;
    this.node.dataset.state = state;
    setText(this.text, describe(this.#found, state));
    this.button.hidden = !isSearchable(document) || Boolean(document.trashed_at ?? document.superseded_by);
    this.button.disabled = state === "translating";
    this.close();
    if (state === "translating") this.#timer = setTimeout(() => this.#poll(), POLL_MS);
  }

  /** Stop following. */
  close() {
    clearTimeout(this.#timer);
  }

  async #poll() {
    const { id } = this.document;
    try {
      const now = await this.api.get(`/documents/${id}`);
      if (now.id === id && this.node.isConnected) this.documents.changed(now);
    } catch {
      if (this.node.isConnected) this.update(this.document);
    }
  }

  async #again() {
    const { id } = this.document;
    try {
      this.documents.changed(await this.api.post(`/documents/${id}/translate`));
    } catch (error) {
      if (error.status === 409) setText(this.text, t("translation.off"));
      else report(error, t("failed.translate", { name: titleOf(this.document) }), () => this.#again());
    }
  }
}

/** `translating`, `translated` or `failed`, which is tried again by itself; null where no passage is to be translated. */
function stateOf({ status, passages, error }) {
  if (!passages) return null;
  if (error && status !== "running") return "failed";
  return status === "done" ? "translated" : "translating";
}

function describe({ translated: n, passages, error, error_code: code }, state) {
  const words = t(`translation.${state}`, { n, passages });
  return state === "failed" ? `${words} ${textOrNull(`error.${code}`) ?? error}` : words;
}
