// The sidebar: earlier conversations, newest first; open, rename, delete.

import { confirm } from "../shared/dialogs.js";
import { byId, el, focusIfLost, onScrolledIntoView, setAttribute, setText } from "../shared/dom.js";
import { cleanName, formatAge, onLanguage, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { editTitle } from "../shared/inline_title.js";
import { Viewport } from "../shared/lists/viewport.js";
import { faultBox, report } from "../shared/notices.js";

const PAGE = 30;
const ROW_HEIGHT = 54;
const TYPING_MS = 250;

/** Conversations that follow each other, which are in the page together or not at all. */
class Block {
  constructor(items, makeRow) {
    Object.assign(this, { items, makeRow, node: el("ul") });
  }

  draw() {
    this.node.replaceChildren(...this.items.map(this.makeRow));
  }

  clear() {
    this.node.replaceChildren();
  }
}

export class Conversations {
  #blocks = [];
  #cursor = null;
  #current = null;
  #loads = 0;

  /** `onTitle(title)` is called when the current conversation gets a title or another one. */
  constructor({ api, onOpen, onNew, onTitle }) {
    Object.assign(this, { api, onOpen, onNew, onTitle });
    this.list = byId("conversation-list");
    this.viewport = new Viewport({ scroller: this.list.parentElement, guess: PAGE * ROW_HEIGHT });
    this.more = byId("conversations-more");
    byId("new-conversation").addEventListener("click", () => onNew());
    this.more.addEventListener("click", () => this.load({ next: true }));
    this.search = byId("conversation-search");
    this.search.addEventListener("input", () => this.#searchSoon());
    onScrolledIntoView(this.more, () => this.load({ next: true }));
    onLanguage(() => this.#draw());
  }

  #searchSoon() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.load(), TYPING_MS);
  }

  get #items() {
    return this.#blocks.flatMap(({ items }) => items);
  }

  titleOf(id) {
    return this.#items.find((item) => item.id === id)?.title ?? "";
  }

  setCurrent(id) {
    this.#current = id;
    for (const row of this.list.querySelectorAll(".conversation")) markCurrent(row, row.dataset.conversationId === id);
  }

  /** Load the first page or the next one; true if it came. */
  async load({ next = false } = {}) {
    const load = ++this.#loads;
    this.more.disabled = true;
    try {
      const page = await this.api.get("/conversations", { limit: PAGE, cursor: next ? this.#cursor : null, q: this.search.value.trim() });
      if (load !== this.#loads) return false;
      this.#cursor = page.next_cursor;
      byId("conversations-fault").replaceChildren();
      this.#add(page.items, { next });
      if (this.titleOf(this.#current)) this.onTitle(this.titleOf(this.#current));
      return true;
    } catch (error) {
      this.#showFault(error, next);
      return false;
    } finally {
      this.more.disabled = false;
    }
  }

  #showFault(error, next) {
    byId("conversations-fault").replaceChildren(faultBox(error, { what: t("failed.conversations"), onRetry: () => this.load({ next }), testid: "conversations-fault" }));
  }

  /** Add the next conversations, or show these instead of all others. */
  #add(items, { next }) {
    if (!next) for (const { node } of this.#blocks.splice(0)) this.viewport.remove(node);
    const block = new Block(items, (item) => this.#row(item));
    block.draw();
    this.#blocks.push(block);
    this.viewport.add(block.node, block);
    if (!next) return this.#draw();
    this.list.append(block.node);
    return this.#drawEnd();
  }

  #draw() {
    if (this.list.querySelector("input")) return;
    this.list.replaceChildren(...this.#blocks.map(({ node }) => node));
    for (const block of this.#blocks) if (block.node.hasChildNodes()) block.draw();
    this.#drawEnd();
  }

  #drawEnd() {
    this.more.hidden = !this.#cursor;
    const empty = byId("conversations-empty");
    empty.hidden = this.#items.length > 0;
    setText(empty, t(this.search.value.trim() ? "conversations.noMatch" : "conversations.empty"));
  }

  #row(item) {
    const title = cleanName(item.title) || t("conversations.untitled");
    const button = (name, testid, label, click) => el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": testid, "aria-label": label, title: label, on: { click },
    }, icon(name));
    const row = el("li", { class: "conversation", "data-testid": "conversation-row", "data-conversation-id": item.id },
      el("button", { type: "button", class: "conversation-open", "data-testid": "conversation-open", on: { click: () => this.onOpen(item.id) } },
        el("span", { class: "conversation-name", title }, title),
        item.excerpt ? el("span", { class: "conversation-excerpt", "data-testid": "conversation-excerpt" }, cleanName(item.excerpt)) : null,
        el("span", { class: "conversation-age" }, formatAge(item.updated_at))),
      el("div", { class: "conversation-actions" },
        button("edit", "conversation-rename", t("conversations.rename", { title }), () => this.#rename(item, row)),
        button("delete", "conversation-delete", t("conversations.delete", { title }), () => this.#delete(item))));
    markCurrent(row, item.id === this.#current);
    return row;
  }

  async #rename(item, row) {
    const title = await editTitle(row, { value: item.title ?? "", label: t("conversations.title"), testid: "conversation-title-input" });
    if (title) await this.#saveTitle(item, title);
    row.replaceChildren();
    this.#draw();
    focusIfLost(this.list.querySelector(`[data-conversation-id="${CSS.escape(item.id)}"] [data-testid="conversation-rename"]`));
  }

  async #saveTitle(item, title) {
    try {
      await this.api.patch(`/conversations/${item.id}`, { title });
      item.title = title;
      if (item.id === this.#current) this.onTitle(title);
    } catch (error) {
      report(error, t("failed.rename", { name: title }), () => this.#saveTitle(item, title));
    }
  }

  async #delete(item) {
    const title = cleanName(item.title) || t("conversations.untitled");
    if (!(await confirm({ title: t("delete.conversationTitle", { title }), text: t("delete.conversationText"), yes: t("delete.yes") }))) return;
    try {
      await this.api.delete(`/conversations/${item.id}`);
    } catch (error) {
      if (error.status !== 404) return report(error, t("failed.delete", { name: title }));
    }
    for (const block of this.#blocks) block.items = block.items.filter((other) => other !== item);
    this.#draw();
    byId("new-conversation").focus();
    if (item.id === this.#current) this.onNew();
  }
}

function markCurrent(row, current) {
  row.classList.toggle("current", current);
  const open = row.querySelector(".conversation-open");
  if (open) setAttribute(open, "aria-current", current ? "true" : null);
}
