// The embedding servers, for administrators: add, try, change, switch off, remove; and re-index the library, with an estimate first.

import { choose, confirm, openDialog } from "../shared/dialogs.js";
import { el, setText } from "../shared/dom.js";
import { formatNumber, t } from "../language/i18n.js";
import { errorText, report } from "../shared/notices.js";

const ROUTE = "/embedding-servers";
/** The fields of a server: what the API takes, and whether it is a number. */
const FIELDS = [["name"], ["model"], ["base_url"], ["api_key_env"], ["query_prefix"], ["passage_prefix"], ["max_input_tokens", true], ["batch_size", true], ["price_per_million_tokens", true]];
const EMPTIED = new Set(["base_url", "api_key_env"]); // null takes these away

/** A button that opens the dialog, for the settings. */
export function serversButton(api) {
  return el("button", { type: "button", class: "button", "data-testid": "servers-open", on: { click: () => openServers(api) } }, t("servers.open"));
}

async function openServers(api) {
  try {
    new ServersDialog(api, await api.get(ROUTE));
  } catch (error) {
    report(error, t("failed.servers"), () => openServers(api));
  }
}

class ServersDialog {
  constructor(api, state) {
    this.api = api;
    this.body = el("div", { class: "settings" });
    this.message = el("p", { role: "status", "data-testid": "servers-message" });
    openDialog({ testid: "servers-dialog", kind: "wide", title: t("servers.title"), body: [this.body, this.message] });
    this.#draw(state);
  }

  #draw(state) {
    this.state = state;
    this.body.replaceChildren(this.#move(), el("ul", { class: "plain-list" }, state.servers.map((server) => this.#row(server))), this.#form());
  }

  /** How far a re-indexing is, with the means to steer it. */
  #move() {
    const move = this.state.reindexing;
    if (!move) return "";
    const steer = (action) => this.#button(`servers-${action}`, t(`model.${action}`), () => this.#run(() => this.api.post(`${ROUTE}/reindexing/${action}`)));
    return el("p", { class: "note", "data-testid": "servers-move" }, t("servers.move", move), steer(move.paused ? "resume" : "pause"), steer("cancel"));
  }

  #row(server) {
    const facts = [server.model, t("servers.dimensions", { n: server.dimensions }), t("servers.holds", { documents: server.documents, notes: server.notes }),
      server.is_default ? t("servers.default") : null, server.active ? null : t("servers.off"), server.api_key_env && !server.key_is_set ? t("servers.noKey", { name: server.api_key_env }) : null];
    const path = `${ROUTE}/${server.id}`;
    return el("li", { class: "setting", "data-testid": "server-row", "data-name": server.name },
      el("div", {}, el("strong", {}, server.name), el("p", { class: "hint" }, facts.filter(Boolean).join(" · "))),
      el("div", { class: "setting-input" },
        this.#button("server-try", t("servers.try"), () => this.#try(server)),
        this.#button("server-edit", t("servers.edit"), () => this.#edit(server)),
        this.#button("server-reindex", t("servers.reindex"), () => this.#reindex(server)),
        server.is_default ? null : this.#button("server-default", t("servers.makeDefault"), () => this.#run(() => this.api.patch(path, { is_default: true }))),
        server.is_default ? null : this.#button("server-switch", t(server.active ? "servers.switchOff" : "servers.switchOn"), () => this.#switch(server)),
        server.is_default ? null : this.#button("server-remove", t("servers.remove"), () => this.#remove(server))));
  }

  #button(testid, words, click) {
    return el("button", { type: "button", class: "button small", "data-testid": testid, on: { click } }, words);
  }

  /** Run a change, then show the servers as they are now. */
  async #run(change, done = "") {
    setText(this.message, "");
    try {
      await change();
      this.#draw(await this.api.get(ROUTE));
      setText(this.message, done);
      return true;
    } catch (error) {
      setText(this.message, errorText(error));
      return false;
    }
  }

  async #try(server) {
    setText(this.message, t("servers.trying"));
    try {
      const { ok, error, dimensions, milliseconds, texts_per_second: speed } = await this.api.post(`${ROUTE}/${server.id}/test`);
      setText(this.message, ok ? t("servers.works", { n: dimensions.returned, ms: formatNumber(Math.round(milliseconds)), speed: formatNumber(Math.round(speed)) }) : error.detail);
    } catch (error) {
      setText(this.message, errorText(error));
    }
  }

  async #reindex(server) {
    try {
      const path = `${ROUTE}/${server.id}/reindex`;
      const { documents, notes, tokens, embedding_seconds: seconds, cost_usd: cost } = await this.api.get(path);
      const text = [t("servers.estimate", { documents, notes, tokens: formatNumber(tokens) }),
        seconds === null ? "" : t("servers.time", { minutes: formatNumber(Math.ceil(seconds / 60)) }),
        cost === null ? "" : t("servers.cost", { cost: formatNumber(cost) })].filter(Boolean).join(" ");
      if (await confirm({ title: t("servers.reindexTitle", { name: server.name }), text, yes: t("servers.reindex") })) await this.#run(() => this.api.post(path));
    } catch (error) {
      setText(this.message, errorText(error));
    }
  }

  /** Switch a server on, or off: then somebody decides what happens to what it holds. */
  async #switch({ id, name, active, documents, notes }) {
    const body = { active: !active };
    if (active && documents + notes) {
      const options = ["reindex", "words"].map((value) => ({ value, words: t(`servers.fate.${value}`) }));
      body.documents = await choose({ title: t("servers.switchOffTitle", { name }), text: t("servers.holds", { documents, notes }), options });
      if (!body.documents) return;
    }
    await this.#run(() => this.api.patch(`${ROUTE}/${id}`, body));
  }

  async #remove({ id, name }) {
    const isSure = await confirm({ title: t("servers.removeTitle", { name }), text: t("servers.removeText"), yes: t("servers.remove") });
    if (isSure) await this.#run(() => this.api.delete(`${ROUTE}/${id}`));
  }

  #edit(server) {
    this.form.replaceWith(this.#form(server));
    this.inputs.get("name").focus();
  }

  /** The form of a new server, or of the given one. */
  #form(server = null) {
    this.inputs = new Map(FIELDS.map(([key]) => [key, el("input", { type: "text", class: "input", id: `server-${key}`, autocomplete: "off", value: String(server?.[key] ?? "") })]));
    const rows = FIELDS.map(([key]) => el("div", { class: "setting" }, el("label", { htmlFor: `server-${key}` }, t(`servers.${key}`)), this.inputs.get(key)));
    this.form = el("form", { "data-testid": "server-form", novalidate: true },
      el("h3", { class: "section-title" }, server ? t("servers.change", { name: server.name }) : t("servers.new")), rows,
      el("button", { type: "submit", class: "button primary", "data-testid": "server-save" }, t("save")));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(server);
    });
    return this.form;
  }

  async #save(server) {
    const body = {};
    for (const [key, isNumber] of FIELDS) {
      const text = this.inputs.get(key).value;
      if (text === String(server?.[key] ?? "")) continue;
      const number = Number(text.replace(",", "."));
      body[key] = text === "" && EMPTIED.has(key) ? null : isNumber && Number.isFinite(number) ? number : text;
    }
    const save = () => this.#run(() => (server ? this.api.patch(`${ROUTE}/${server.id}`, body) : this.api.post(ROUTE, body)), t("servers.saved"));
    const holds = server?.documents + server?.notes > 0;
    if (server && holds && server.is_default && ("model" in body || "passage_prefix" in body)) {
      if (!(await confirm({ title: t("servers.reindexTitle", { name: server.name }), text: t("servers.otherVectors"), yes: t("servers.reindex") }))) return;
      body.documents = "reindex";
    }
    await save();
  }
}
