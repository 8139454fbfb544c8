// A list of rows, read page by page and kept in step with a feed of changes.

import { keepFocus } from "../shared/dom.js";
import { Pager } from "../shared/pager.js";
import { onReached } from "../shared/reached.js";

const PAGE = 50;

export class RowList {
  #rows = new Map();
  #query = {};
  #since = new Map();

  /**
   * `drawRow(item)` gives `{node, item, update(item)}`; `belongs(item)` says whether a changed item is of this list.
   * The latest `order` is on top; with `restless`, a row whose `order` changes takes its new place. `fallback` takes the focus
   * when the last row goes. `endless`: the button for more presses itself.
   */
  constructor({ feed, path, list, more, drawRow, belongs, order, onSettle, onFault, fallback, endless = false, restless = false }) {
    Object.assign(this, { feed, list, more, drawRow, belongs, order, onSettle, onFault, fallback, restless });
    this.pager = new Pager({ api: feed.api, path });
    this.stop = new AbortController();
    feed.addEventListener("change", ({ detail }) => this.#put(detail), { signal: this.stop.signal });
    feed.addEventListener("gone", ({ detail }) => (this.#since.set(detail.id, null), this.#drop(detail.id)), { signal: this.stop.signal });
    more.addEventListener("click", () => this.loadMore());
    if (endless) onReached(more, () => this.loadMore());
  }

  get items() {
    return [...this.#rows.values()].map((row) => row.item);
  }

  /** Read the first page anew; nothing is shown before `show` is given the result. */
  fetch(query, { limit = PAGE } = {}) {
    this.#query = query;
    this.#since.clear();
    return this.pager.load({ ...query, limit });
  }

  /** Show these items and no others, but for what has happened since they were asked for; rows that stay keep the focus. */
  show(fetched) {
    const items = fetched.map((item) => this.#newest(item)).filter((item) => item && this.belongs(item));
    const kept = new Set(items.map(({ id }) => id));
    for (const [id, row] of this.#rows) {
      if (kept.has(id)) continue;
      this.feed.watch.forget(id);
      this.#forget(id, row);
    }
    keepFocus(this.list, () => this.list.append(...items.map((item) => this.#rowFor(item).node)));
    for (const [id, item] of this.#since) if (item && !kept.has(id)) this.#put(item);
    this.#settle();
  }

  async loadMore() {
    this.more.disabled = true;
    try {
      const items = await this.pager.load({ ...this.#query, limit: PAGE }, { next: true });
      for (const item of items ?? []) if (!this.#rows.has(item.id)) this.list.append(this.#rowFor(item).node);
    } catch (error) {
      this.onFault(error);
    }
    this.more.disabled = false;
    this.#settle();
  }

  clear() {
    this.pager.reset();
    this.#since.clear();
    this.show([]);
  }

  /** Draw again what depends on the scope or the language. */
  redraw() {
    for (const row of this.#rows.values()) row.update(row.item);
  }

  /** Listen no longer. */
  close() {
    this.stop.abort();
    this.pager.reset();
  }

  #rowFor(item) {
    let row = this.#rows.get(item.id);
    if (row) row.update(item);
    else this.#rows.set(item.id, (row = this.drawRow(item)));
    this.feed.watch.follow(item);
    return row;
  }

  #newest(item) {
    if (!this.#since.has(item.id)) return item;
    const later = this.#since.get(item.id);
    return later && Date.parse(later.updated_at) < Date.parse(item.updated_at) ? item : later;
  }

  #put(item) {
    const row = this.#rows.get(item.id);
    this.#since.set(item.id, item);
    if (!this.belongs(item)) return this.#drop(item.id);
    if (row && Date.parse(item.updated_at) < Date.parse(row.item.updated_at)) return;
    if (!row) this.#place(item);
    else if (this.restless && item[this.order] !== row.item[this.order]) this.#place(item);
    else this.#rowFor(item);
    this.#settle();
  }

  /** Where its date puts it; what would be below the last row is shown when that page is read. */
  #place(item) {
    const timeOf = (it) => Date.parse(it[this.order]);
    const [below] = this.items.filter((it) => it.id !== item.id && timeOf(it) <= timeOf(item)).sort((one, other) => timeOf(other) - timeOf(one));
    if (!below && this.pager.hasMore) return this.#drop(item.id);
    const { node } = this.#rowFor(item);
    keepFocus(this.list, () => this.list.insertBefore(node, below ? this.#rows.get(below.id).node : null));
  }

  /** The focus of a row that goes passes to its neighbour. */
  #drop(id) {
    const row = this.#rows.get(id);
    if (!row) return;
    const focused = row.node.contains(document.activeElement);
    const neighbour = row.node.nextElementSibling ?? row.node.previousElementSibling;
    this.#forget(id, row);
    this.#settle();
    if (focused) (neighbour?.querySelector("button") ?? this.fallback).focus({ preventScroll: true });
  }

  #forget(id, row) {
    row.node.remove();
    this.#rows.delete(id);
  }

  #settle() {
    this.more.hidden = !this.pager.hasMore;
    this.onSettle();
  }
}
