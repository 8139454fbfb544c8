// The documents that are selected in the library, and the bar with what can be done with all of them.

import { byId, el, setAttribute, setText } from "../shared/dom.js";
import { onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { isSearchable } from "./documents.js";

const STEPS = { ArrowDown: 1, ArrowUp: -1 };

export class Selection {
  #items = new Map();
  #anchor = null;
  #isOn = false;
  #places = null;

  /** `rows` is the RowList, `documents` acts on the items, `notebooks` lists where they can be moved. */
  constructor({ rows, documents, notebooks, scope }) {
    Object.assign(this, { rows, documents, notebooks, scope });
    this.bar = byId("selection");
    this.start = byId("select");
    this.start.addEventListener("click", () => (this.#isOn ? this.clear() : this.#turn(true)));
    byId("select-all").addEventListener("click", () => this.selectAll());
    this.bar.addEventListener("keydown", ({ key }) => key === "Escape" && this.clear());
    documents.addEventListener("change", ({ detail }) => this.#items.has(detail.id) && this.#items.set(detail.id, detail));
    documents.addEventListener("gone", ({ detail }) => this.#items.delete(detail.id) && this.#changed());
    notebooks.addEventListener("choose", () => this.clear());
    onLanguage(() => ((this.#places = null), this.#draw()));
  }

  has(id) {
    return this.#items.has(id);
  }

  /** A checkbox was clicked: with Shift, everything from the last one to this one follows it. */
  pick(item, { shiftKey }) {
    const selects = !this.#items.has(item.id);
    const ids = shiftKey && this.#anchor ? this.rows.idsBetween(this.#anchor, item.id) : [item.id];
    for (const id of ids) this.#set(id, selects);
    this.#anchor = item.id;
    this.#changed();
  }

  /** Arrows move between the checkboxes, with Shift they select; Ctrl+A selects all, Delete moves to the trash, Escape ends the selection. */
  step(item, event) {
    const { key, shiftKey } = event;
    if (key === "a" && (event.ctrlKey || event.metaKey)) this.selectAll();
    else if (key === "Escape") this.clear();
    else if (key === "Delete" && this.#items.size) this.#run("trash");
    else if (STEPS[key]) this.#move(item, STEPS[key], shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async selectAll() {
    await this.rows.loadAll();
    for (const item of this.rows.items) this.#items.set(item.id, item);
    this.#changed();
  }

  clear() {
    this.#items.clear();
    this.#anchor = null;
    const hadFocus = this.bar.contains(document.activeElement);
    this.#turn(false);
    if (hadFocus) this.start.focus({ preventScroll: true });
  }

  #move(item, by, isExtending) {
    const next = this.rows.neighbourOf(item.id, by);
    if (!next) return;
    if (isExtending) {
      for (const { id } of [item, next.item]) this.#set(id, true);
      this.#changed();
    }
    this.#anchor = next.item.id;
    next.box.focus();
    next.node.scrollIntoView({ block: "nearest" });
  }

  #set(id, selected) {
    const item = this.rows.items.find((it) => it.id === id);
    if (selected && item) this.#items.set(id, item);
    else this.#items.delete(id);
  }

  #turn(isOn) {
    this.#isOn = isOn;
    this.#changed();
  }

  #changed() {
    this.#isOn ||= this.#items.size > 0;
    this.rows.list.classList.toggle("selecting", this.#isOn);
    this.rows.redraw();
    this.#draw();
  }

  /** Act on everything selected; what succeeded is no longer selected. */
  async #run(action, ...facts) {
    const items = [...this.#items.values()];
    this.clear();
    await this.documents[action](items, ...facts);
  }

  #draw() {
    const items = [...this.#items.values()];
    setAttribute(this.start, "aria-pressed", this.#isOn);
    this.bar.hidden = !this.#isOn;
    if (!this.#isOn) return (this.#places = null);
    this.#places ??= this.#choosePlace();
    this.#places.disabled = !items.length;
    setText(byId("selection-count"), t("select.count", { n: items.length }));
    const inTrash = this.notebooks.place.kind === "trash";
    const button = (action, symbol, words, act) => el("button", {
      type: "button", class: "button small icon-only", "data-testid": `selection-${action}`, "aria-label": words, title: words, disabled: !items.length, on: { click: act },
    }, icon(symbol));
    byId("selection-actions").replaceChildren(...(inTrash
      ? [button("restore", "restore", t("document.restore"), () => this.#run("restore")), button("delete", "delete", t("document.deleteForGood"), () => this.#run("removeAll"))]
      : [
        button("attach", "attach", t("select.attach"), () => this.#attach(items)),
        this.#places,
        items.some(({ status }) => status === "failed") ? button("retry", "retry", t("document.retry"), () => this.#run("retryAll")) : null,
        button("trash", "delete", t("document.trash"), () => this.#run("trash")),
      ]).filter(Boolean));
    return undefined;
  }

  #attach(items) {
    for (const item of items.filter(isSearchable)) this.scope.add(item);
    this.clear();
  }

  /** A select box that moves what is selected to a notebook. */
  #choosePlace() {
    const select = el("select", {
      class: "input small", "data-testid": "selection-move", "aria-label": t("select.move"),
      on: { change: () => this.#run("moveAll", { notebook_id: select.value || null }) },
    }, el("option", { value: "", disabled: true, selected: true }, t("select.move")));
    this.notebooks.loadAll().then((found) => select.append(
      el("option", { value: "" }, t("notebook.none")), ...found.map(({ id, title }) => el("option", { value: id }, title))), () => {});
    return select;
  }
}
