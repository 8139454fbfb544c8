// One setting of the form: its label, its help, its field, and a button for the default.

import { el, setAttribute, setText } from "../../shared/dom.js";
import { t } from "../../language/i18n.js";

const LONG_TEXT = 120;

export class Field {
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
