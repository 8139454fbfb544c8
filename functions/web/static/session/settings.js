// The settings form for administrators, built from the schema that the server publishes.

import { serversButton } from "./embedding_servers.js";
import { openDialog } from "../shared/dialogs.js";
import { el, setAttribute, setText } from "../shared/dom.js";
import { language, t } from "../language/i18n.js";
import { errorText, report, toast } from "../shared/notices.js";

const LONG_TEXT = 120;
/** Groups of numbers that only experts change, which are folded away. */
const EXPERT_GROUPS = new Set(["search"]);

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
    this.form = el("form", { class: "settings", id: "settings-form", novalidate: true }, serversButton(api), schema.groups.map((group) => this.#group(group)));
    this.save.setAttribute("form", "settings-form");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.dialog = openDialog({
      testid: "settings-dialog", kind: "wide", title: t("settings.title"), body: this.form,
      actions: [this.message, el("span", { class: "spacer" }), this.save], onClose,
    });
  }

  #group({ key, label }) {
    const fields = [...this.fields.values()].filter((field) => field.setting.group === key);
    const nodes = fields.map((field) => field.node);
    const group = el("fieldset", { "data-testid": "settings-group" }, el("legend", {}, label), nodes);
    return EXPERT_GROUPS.has(key) ? el("details", { class: "experts" }, el("summary", {}, label), group) : group;
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
    first?.node.closest("details")?.setAttribute("open", "");
    first?.input.focus();
  }
}

class Field {
  constructor(setting, value) {
    this.setting = setting;
    this.key = setting.key;
    const id = `setting-${setting.key}`;
    this.input = inputFor(setting, value);
    this.input.id = id;
    this.input.setAttribute("aria-describedby", `${id}-help ${id}-fault`);
    this.faultText = el("p", { class: "fault", id: `${id}-fault`, "data-testid": "setting-fault", hidden: true });
    const reset = el("button", { type: "button", class: "button quiet small", on: { click: () => this.#reset() } }, t("settings.default", { value: displayValue(setting) }));
    this.node = el("div", { class: `setting ${setting.type}`, "data-testid": "setting-field", "data-key": setting.key },
      el("label", { htmlFor: id }, setting.label),
      el("div", { class: "setting-input" }, this.input, reset),
      el("p", { class: "hint", id: `${id}-help` }, [setting.description, boundsText(setting)].filter(Boolean).join(" ")),
      this.faultText);
  }

  /** The value in the setting's type. Text that is not a number stays text, so that the server reports the error. */
  get value() {
    const { type } = this.setting;
    if (type === "boolean") return this.input.checked;
    if (type === "string") return this.input.value;
    const text = this.input.value.trim().replace(",", ".");
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  }

  showFault(message) {
    setText(this.faultText, message);
    this.faultText.hidden = !message;
    setAttribute(this.input, "aria-invalid", message ? "true" : null);
  }

  #reset() {
    if (this.setting.type === "boolean") this.input.checked = this.setting.default;
    else this.input.value = this.setting.default ?? "";
    this.input.focus();
  }
}

function inputFor({ type, max_length: length, choices, default: fallback }, value) {
  if (type === "boolean") return el("input", { type: "checkbox", checked: Boolean(value), class: "switch" });
  if (choices) return el("select", { class: "input" }, choices.map((choice) => el("option", { value: choice.value, selected: choice.value === value }, choice.label)));
  const text = value ?? "";
  if (type !== "string") return el("input", { type: "text", inputmode: type === "integer" ? "numeric" : "decimal", class: "input", value: text });
  if (Math.max(length || 0, String(fallback ?? "").length, String(text).length) > LONG_TEXT) return el("textarea", { class: "input", rows: "3", maxlength: length || null, value: text });
  return el("input", { type: "text", class: "input", maxlength: length || null, value: text });
}

function displayValue({ default: value, choices }) {
  const choice = choices?.find((one) => one.value === value);
  if (choice) return choice.label;
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  const text = String(value ?? "");
  return text.length > 40 ? `${text.slice(0, 39)}…` : text || "–";
}

function boundsText({ minimum, maximum }) {
  const given = (value) => value !== null && value !== undefined;
  if (given(minimum) && given(maximum)) return t("settings.between", { minimum, maximum });
  if (given(minimum)) return t("settings.atLeast", { minimum });
  return given(maximum) ? t("settings.atMost", { maximum }) : "";
}
