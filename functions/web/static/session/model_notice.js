// Tells an administrator what is wrong with the models: one that does not work, documents found by their words alone, or a library
// that is indexed with another embedding model than the installation has. Moves the library.

import { byId, el, setText } from "../shared/dom.js";
import { onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { report, toast } from "../shared/notices.js";

const ROUTE = "/embedding-servers";
const MOVING_MS = 3000;
const IDLE_MS = 30_000; // what fails every upload is shown within a minute

export class ModelNotice {
  constructor({ api }) {
    this.api = api;
    this.state = null;
    this.fault = "";
    this.text = el("p", { "data-testid": "model-notice-text" });
    this.buttons = Object.fromEntries(["adopt", "retry", "pause", "resume", "cancel", "reindex"].map((name) => [name, this.#makeButton(name)]));
    this.node = byId("model-notice");
    this.node.append(icon("alert"), this.text, ...Object.values(this.buttons));
    onLanguage(() => this.#draw());
  }

  /** Ask the server, and again for as long as the page is open. Nobody asked for this notice, so its failure is not shown. */
  async load() {
    const [state, fault] = await Promise.all([this.api.get(ROUTE).catch(() => null), findFault(this.api)]);
    this.fault = fault;
    this.#show(state ?? this.state);
  }

  #makeButton(name) {
    return el("button", { type: "button", class: "button small", hidden: true, "data-testid": `model-${name}`, on: { click: (event) => this.#run(name, event.currentTarget) } });
  }

  async #run(name, button) {
    const routes = { adopt: "adopt", retry: "retry", reindex: `${this.state.servers[0].id}/reindex` }; // the first server is the default
    button.disabled = true;
    try {
      this.#show(await this.api.post(`${ROUTE}/${routes[name] ?? `reindexing/${name}`}`));
    } catch (error) {
      report(error, t("failed.adopt"), () => this.#run(name, button));
    } finally {
      button.disabled = false;
    }
  }

  #show(state) {
    const hasMoved = this.state?.reindexing && !state.reindexing && state.servers.every((server) => server.is_default || !(server.documents + server.notes));
    this.state = state;
    this.#draw();
    if (hasMoved) toast(t("model.moved", { model: state.stored.name }));
    this.#poll();
  }

  #poll() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), this.state?.reindexing ? MOVING_MS : IDLE_MS);
  }

  #draw() {
    if (!this.state) return;
    const { stored, configured, can_adopt: canAdopt, reindexing: move, words_alone: wordsAlone, rejected } = this.state;
    const sentences = [
      this.fault,
      move && t("model.moving", { n: move.done + move.remaining, done: move.done, model: stored.name }),
      move?.paused && t("model.paused"),
      move?.failed && t("model.failed", { n: move.failed }),
      rejected && t("model.rejected", { n: rejected }),
      ...wordsAlone.map(({ name, sources }) => t("model.words_alone", { n: sources, model: name })),
      canAdopt && t(stored.model === configured.model ? "model.otherwise" : "model.other", { stored: stored.name, configured: configured.name }),
    ].filter(Boolean);
    this.node.hidden = !sentences.length;
    setText(this.text, sentences.join(" "));
    this.#offer("adopt", canAdopt || move?.failed, t(canAdopt ? "model.adopt" : "model.again"));
    this.#offer("retry", rejected && !this.fault, t("model.retry", { n: rejected }));
    this.#offer("pause", move && !move.paused, t("model.pause"));
    this.#offer("resume", move?.paused, t("model.resume"));
    this.#offer("cancel", move, t("model.cancel"));
    this.#offer("reindex", !move && !canAdopt && wordsAlone.length, t("model.reindex"));
  }

  #offer(name, isOffered, words) {
    this.buttons[name].hidden = !isOffered;
    setText(this.buttons[name], words);
  }
}

/** The sentence of /ready about the models when one of them does not work, else "". Its 503 is an answer, so it is not repeated. */
async function findFault(api) {
  try {
    const { models } = (await (await fetch("/ready", { headers: await api.authorization() })).json()).checks;
    return models.ok ? "" : models.detail;
  } catch {
    return "";
  }
}
