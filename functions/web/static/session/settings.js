// The settings for administrators: a form in tabs, built from the schema that the server publishes, and the usage by day.

import { serversButton } from "./embedding_servers.js";
import { openDialog } from "../shared/dialogs.js";
import { el, setText } from "../shared/dom.js";
import { language, t } from "../language/i18n.js";
import { errorText, report, toast } from "../shared/notices.js";
import { Field } from "./settings/field.js";
import { Tabs } from "./settings/tabs.js";
import { usageChart } from "./settings/usage.js";

/** What a tab shows above its settings, by the group of the schema. */
const CONTENTS = { search: (api) => serversButton(api), costs: (api) => usageChart(api) };

export async function openSettings({ api, onClose }) {
  try {
    const [schema, values] = await Promise.all([api.get(`/settings/schema?lang=${language()}`), api.get("/settings")]);
    new SettingsForm(api, schema, values, onClose);
  } catch (error) {
    report(error, t("failed.settings"), () => openSettings({ api, onClose }));
    onClose();
  }
}

class SettingsForm {
  constructor(api, schema, values, onClose) {
    Object.assign(this, { api, values });
    this.fields = new Map(schema.settings.map((setting) => [setting.key, new Field(setting, values[setting.key] ?? setting.default)]));
    this.message = el("p", { class: "form-message", role: "status" });
    this.save = el("button", { type: "submit", class: "button primary", "data-testid": "settings-save" }, t("save"));
    this.tabs = new Tabs(schema.groups.map(({ key, label }) => ({ key, label, draw: () => this.#group(key) })), t("settings.title"));
    this.form = el("form", { class: "settings", id: "settings-form", novalidate: true }, this.tabs.nodes);
    this.save.setAttribute("form", "settings-form");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.dialog = openDialog({
      testid: "settings-dialog", kind: "wide tall", title: t("settings.title"), body: this.form,
      actions: [this.message, el("span", { class: "spacer" }), this.save], onClose,
    });
  }

  /** The settings of a group; those that only experts change are folded away. */
  #group(key) {
    const fields = [...this.fields.values()].filter(({ setting }) => setting.group === key);
    const nodesOf = (isExpert) => fields.filter(({ setting }) => Boolean(setting.is_expert) === isExpert).map(({ node }) => node);
    const experts = nodesOf(true);
    return [
      CONTENTS[key]?.(this.api),
      el("div", { "data-testid": "settings-group" }, nodesOf(false)),
      experts.length ? el("details", { class: "experts" }, el("summary", {}, t("settings.experts", { n: experts.length })), el("p", { class: "hint" }, t("settings.expertsWhy")), experts) : null,
    ].filter(Boolean);
  }

  async #save() {
    const changed = [...this.fields.values()].filter((field) => field.value !== this.values[field.key]);
    for (const field of this.fields.values()) field.showFault("");
    if (!changed.length) return setText(this.message, t("settings.unchanged"));
    this.save.disabled = true;
    try {
      this.values = await this.api.patch("/settings", Object.fromEntries(changed.map((field) => [field.key, field.value])));
      this.dialog.close();
      toast(t("settings.saved", { n: changed.length }));
    } catch (error) {
      setText(this.message, errorText(error));
      this.#showFaults(error.faults ?? []);
    } finally {
      this.save.disabled = false;
    }
  }

  #showFaults(faults) {
    for (const { key, message } of faults) this.fields.get(key)?.showFault(language() === "en" ? message : t("settings.invalid"));
    const first = this.fields.get(faults[0]?.key);
    if (!first) return;
    this.tabs.open(first.setting.group);
    first.node.closest("details")?.setAttribute("open", "");
    first.input.focus();
  }
}
