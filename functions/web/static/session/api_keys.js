// The personal API keys of a user: made once with scopes and an expiry, shown once, listed with their last use, revoked.

import { confirm, openDialog } from "../shared/dialogs.js";
import { el, setText } from "../shared/dom.js";
import { formatDate, t } from "../language/i18n.js";
import { errorText, report, toast } from "../shared/notices.js";

const ROUTE = "/keys";
const SCOPES = ["read", "ask", "write"];
const DAYS = ["30", "90", "365", "3650"];

export async function openKeys({ api }) {
  try {
    new KeysDialog(api, (await api.get(ROUTE)).items);
  } catch (error) {
    report(error, t("failed.keys"), () => openKeys({ api }));
  }
}

class KeysDialog {
  constructor(api, keys) {
    Object.assign(this, { api, keys });
    this.list = el("ul", { class: "plain-list", "data-testid": "key-list" });
    this.made = el("div", { role: "status" });
    this.message = el("p", { class: "fault", role: "alert" });
    openDialog({ testid: "keys-dialog", kind: "wide", title: t("keys.title"), body: [el("p", { class: "hint" }, t("keys.help")), this.list, this.made, this.#form()] });
    this.#draw();
  }

  #draw() {
    this.list.replaceChildren(...this.keys.map((key) => this.#row(key)));
    if (!this.keys.length) this.list.append(el("li", { class: "hint" }, t("keys.none")));
  }

  #row(key) {
    const facts = [key.scopes.map((scope) => t(`keys.scope.${scope}`)).join(", "), t("keys.until", { date: formatDate(key.expires_at, { dateStyle: "medium" }) }),
      key.last_used_at ? t("keys.used", { date: formatDate(key.last_used_at) }) : t("keys.unused")];
    return el("li", { class: "setting", "data-testid": "key-row" },
      el("div", { class: "setting-input" },
        el("div", {}, el("strong", {}, key.name), " ", el("code", {}, `${key.hint}…`), el("p", { class: "hint" }, facts.join(" · "))),
        el("button", { type: "button", class: "button small danger", "data-testid": "key-revoke", on: { click: () => this.#revoke(key) } }, t("keys.revoke"))));
  }

  #form() {
    this.name = el("input", { type: "text", class: "input", id: "key-name", maxlength: "100", autocomplete: "off" });
    this.days = el("select", { class: "input", id: "key-days" }, DAYS.map((days) => el("option", { value: days, selected: days === "365" }, t("keys.days", { n: Number(days) }))));
    this.scopes = SCOPES.map((scope) => el("input", { type: "checkbox", value: scope, checked: scope === "read" }));
    const form = el("form", { class: "settings", "data-testid": "key-form", novalidate: true },
      el("h3", { class: "section-title" }, t("keys.new")),
      el("div", { class: "setting" }, el("label", { htmlFor: "key-name" }, t("keys.name")), this.name),
      el("fieldset", {}, el("legend", {}, t("keys.scopes")), this.scopes.map((input) => el("label", { class: "choice" }, input, ` ${t(`keys.scope.${input.value}`)}`))),
      el("div", { class: "setting" }, el("label", { htmlFor: "key-days" }, t("keys.expiry")), this.days),
      this.message,
      el("button", { type: "submit", class: "button primary", "data-testid": "key-create" }, t("keys.create")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#create();
    });
    return form;
  }

  async #create() {
    setText(this.message, "");
    const scopes = this.scopes.filter((input) => input.checked).map((input) => input.value);
    try {
      const { key, ...made } = await this.api.post(ROUTE, { name: this.name.value, scopes, expires_in_days: Number(this.days.value) });
      this.keys = [made, ...this.keys];
      this.name.value = "";
      this.#draw();
      this.#show(key);
    } catch (error) {
      setText(this.message, errorText(error));
    }
  }

  /** Nobody can read the key again, so it stays until the dialog is closed. */
  #show(key) {
    const text = el("input", { type: "text", class: "input", readonly: true, value: key, "data-testid": "key-value", "aria-label": t("keys.value") });
    const copy = async () => {
      text.select();
      try {
        await navigator.clipboard.writeText(key);
        toast(t("keys.copied"));
      } catch {
        text.focus(); // the key is selected, so the user copies it
      }
    };
    this.made.replaceChildren(el("p", { class: "note" }, t("keys.once")),
      el("div", { class: "setting-input" }, text, el("button", { type: "button", class: "button", "data-testid": "key-copy", on: { click: copy } }, t("keys.copy"))));
    text.select();
  }

  async #revoke(key) {
    if (!(await confirm({ title: t("keys.revokeTitle", { name: key.name }), text: t("keys.revokeText"), yes: t("keys.revoke") }))) return;
    try {
      await this.api.delete(`${ROUTE}/${key.id}`);
    } catch (error) {
      if (error.status !== 404) return report(error, t("failed.revoke"), () => this.#revoke(key));
    }
    this.keys = this.keys.filter(({ id }) => id !== key.id);
    this.#draw();
    toast(t("keys.revoked", { name: key.name }));
  }
}
