// Tells an administrator that the library is indexed with another embedding model than the installation has, and moves it.

import { byId, el, setText } from "../shared/dom.js";
import { onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { report, toast } from "../shared/notices.js";

const ROUTE = "/embedding-servers";
const POLL_MS = 3000;

export class ModelNotice {
  constructor({ api }) {
    this.api = api;
    this.state = null;
    this.text = el("p", { "data-testid": "model-notice-text" });
    this.button = el("button", { type: "button", class: "button small", "data-testid": "model-adopt", on: { click: () => this.#adopt() } });
    this.node = byId("model-notice");
    this.node.append(icon("alert"), this.text, this.button);
    onLanguage(() => this.#draw());
  }

  /** Ask the server once, and then for as long as the library moves. */
  async load() {
    try {
      this.#show(await this.api.get(ROUTE));
    } catch {
      this.#poll(); // nobody asked for this notice, so its failure is not shown
    }
  }

  async #adopt() {
    this.button.disabled = true;
    try {
      this.#show(await this.api.post(`${ROUTE}/adopt`));
    } catch (error) {
      report(error, t("failed.adopt"), () => this.#adopt());
    } finally {
      this.button.disabled = false;
    }
  }

  #show(state) {
    const hasMoved = this.state?.reindexing && !state.reindexing && !state.can_adopt;
    this.state = state;
    this.#draw();
    if (hasMoved) toast(t("model.moved", { model: state.stored.name }));
    this.#poll();
  }

  #poll() {
    clearTimeout(this.timer);
    if (this.state?.reindexing) this.timer = setTimeout(() => this.load(), POLL_MS);
  }

  #draw() {
    if (!this.state) return;
    const { stored, configured, can_adopt: canAdopt, reindexing: move } = this.state;
    this.node.hidden = !canAdopt && !move;
    setText(this.text, [
      move && t("model.moving", { n: move.done + move.remaining, done: move.done, model: stored.name }),
      move?.failed && t("model.failed", { n: move.failed }),
      canAdopt && t(stored.model === configured.model ? "model.otherwise" : "model.other", { stored: stored.name, configured: configured.name }),
    ].filter(Boolean).join(" "));
    setText(this.button, t(canAdopt ? "model.adopt" : "model.again"));
    this.button.hidden = !canAdopt && !move?.failed;
  }
}
