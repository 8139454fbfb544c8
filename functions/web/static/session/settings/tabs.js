// Tabs, of which one panel is shown; the arrow keys move between them.

import { el, setAttribute } from "../../shared/dom.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

export class Tabs {
  /** `tabs` are `{key, label, draw}`; `draw()` returns the nodes of a panel. The first one is open. */
  constructor(tabs, label) {
    this.keys = tabs.map(({ key }) => key);
    this.buttons = tabs.map(({ key, label: words }) => el("button", {
      type: "button", role: "tab", class: "settings-tab", id: `tab-${key}`, "aria-controls": `panel-${key}`, "data-testid": "settings-tab", "data-key": key, on: { click: () => this.open(key) },
    }, words));
    this.panels = tabs.map(({ key, draw }) => el("section", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}`, tabindex: "0" }, draw()));
    this.bar = el("div", { class: "settings-tabs", role: "tablist", "aria-label": label }, this.buttons);
    this.bar.addEventListener("keydown", (event) => this.#step(event));
    this.nodes = [this.bar, ...this.panels];
    this.open(this.keys[0]);
  }

  open(key) {
    this.keys.forEach((one, at) => {
      const isOpen = one === key;
      setAttribute(this.buttons[at], "aria-selected", isOpen);
      this.buttons[at].tabIndex = isOpen ? 0 : -1;
      this.panels[at].hidden = !isOpen;
    });
  }

  #step(event) {
    const by = STEPS[event.key];
    if (!by) return;
    event.preventDefault();
    const at = this.buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
    const next = (at + by + this.keys.length) % this.keys.length;
    this.open(this.keys[next]);
    this.buttons[next].focus();
  }
}
