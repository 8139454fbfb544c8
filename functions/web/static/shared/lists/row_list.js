// A list of rows that is loaded page by page and follows the events of a feed.

import { keepFocus, onScrolledIntoView } from "../dom.js";
import { Pager } from "../pager.js";
import { Viewport } from "./viewport.js";

const PAGE = 50;
const ROW_HEIGHT = 68;
const DRAWN_AT_ONCE = 12;

export class RowList {
  #rows = new Map();
  #ids = new WeakMap();
  #query = {};
  #changedSinceFetch = new Map();

  /**
   * `makeRow(item)` returns `{node, item, update(item), draw(), clear()}`; `belongs(item)` says whether a changed item belongs to this
   * list. With a `scroller`, only the rows near its visible part are drawn.
   * The row with the latest date in the field `order` is on top; with `reorders`, a row moves when that date changes.
   * `focusFallback` receives the focus when the last row is removed. With `loadsOnScroll`, `more` is pressed by scrolling to it.
   */
  constructor({ feed, path, list, more, makeRow, belongs, order, onChange, onError, focusFallback, scroller = null, loadsOnScroll = false, reorders = false }) {
    Object.assign(this, { feed, list, more, makeRow, belongs, order, onChange, onError, focusFallback, reorders });
    this.pager = new Pager({ api: feed.api, path });
    this.viewport = scroller ? new Viewport({ scroller, guess: ROW_HEIGHT }) : null;
    this.stop = new AbortController();
    feed.addEventListener("change", ({ detail }) => this.#apply(detail), { signal: this.stop.signal });
    feed.addEventListener("gone", ({ detail }) => (this.#changedSinceFetch.set(detail.id, null), this.#remove(detail.id)), { signal: this.stop.signal });
    more.addEventListener("click", () => this.loadMore());
    if (loadsOnScroll) onScrolledIntoView(more, () => this.loadMore());
  }

  get items() {
    return [...this.#rows.values()].map((row) => row.item);
  }

  /** Load the first page without showing it: pass the result to `show`. */
  fetch(query, { limit = PAGE } = {}) {
    this.#query = query;
    this.#changedSinceFetch.clear();
    return this.pager.load({ ...query, limit });
  }

  /** Replace the rows by these items, updated by changes that arrived since the request; rows that remain keep the focus. */
  show(fetched) {
    const items = fetched.map((item) => this.#newestOf(item)).filter((item) => item && this.belongs(item));
    const kept = new Set(items.map(({ id }) => id));
    const changed = [...this.#changedSinceFetch.values()].filter((item) => item && !kept.has(item.id) && this.belongs(item));
    for (const { id } of changed) kept.add(id);
    for (const [id, row] of this.#rows) {
      if (kept.has(id)) continue;
      this.feed.watch.forget(id);
      this.#forget(id, row);
    }
    keepFocus(this.list, () => this.list.append(...items.map((item) => this.#rowFor(item).node)));
    for (const item of changed) this.#insert(item);
    for (const { id } of items.slice(0, DRAWN_AT_ONCE)) this.#draw(this.#rows.get(id));
    this.#updateMoreButton();
  }

  /** Load the rest of the list. */
  async loadAll() {
    while (this.pager.hasMore && !this.more.disabled) await this.loadMore();
  }

  /** The ids of the rows between two of them, both included, in the order shown. */
  idsBetween(one, other) {
    const ids = [...this.list.children].map((node) => this.#ids.get(node));
    const [from, to] = [ids.indexOf(one), ids.indexOf(other)].sort((a, b) => a - b);
    return from < 0 ? [other] : ids.slice(from, to + 1);
  }

  /** The row below (1) or above (-1) another one, drawn; null or undefined at the end. */
  neighbourOf(id, by) {
    const { node } = this.#rows.get(id);
    const next = by > 0 ? node.nextElementSibling : node.previousElementSibling;
    const row = next && this.#rows.get(this.#ids.get(next));
    this.#draw(row);
    return row;
  }

  /** Load the next page; true if it came. */
  async loadMore() {
    this.more.disabled = true;
    let items = null;
    try {
      items = await this.pager.load({ ...this.#query, limit: PAGE }, { next: true });
      for (const item of items ?? []) if (!this.#rows.has(item.id)) this.list.append(this.#rowFor(item).node);
    } catch (error) {
      this.onError(error);
    }
    this.more.disabled = false;
    this.#updateMoreButton();
    return items !== null;
  }

  clear() {
    this.pager.reset();
    this.#changedSinceFetch.clear();
    this.show([]);
  }

  /** Redraw what depends on the search scope or the language. */
  redraw() {
    for (const row of this.#rows.values()) row.update(row.item);
  }

  /** Stop listening to the feed. */
  close() {
    this.stop.abort();
    this.pager.reset();
  }

  #rowFor(item) {
    let row = this.#rows.get(item.id);
    if (row) row.update(item);
    else this.#rows.set(item.id, (row = this.#add(item)));
    this.feed.watch.follow(item);
    return row;
  }

  #add(item) {
    const row = this.makeRow(item);
    this.#ids.set(row.node, item.id);
    if (this.viewport) this.viewport.add(row.node, row);
    else row.draw();
    return row;
  }

  #draw(row) {
    if (row) this.viewport?.draw(row.node);
  }

  #newestOf(item) {
    if (!this.#changedSinceFetch.has(item.id)) return item;
    const later = this.#changedSinceFetch.get(item.id);
    return later && Date.parse(later.updated_at) < Date.parse(item.updated_at) ? item : later;
  }

  #apply(item) {
    const row = this.#rows.get(item.id);
    this.#changedSinceFetch.set(item.id, item);
    if (!this.belongs(item)) return this.#remove(item.id);
    if (row && Date.parse(item.updated_at) < Date.parse(row.item.updated_at)) return;
    if (!row) this.#insert(item);
    else if (this.reorders && item[this.order] !== row.item[this.order]) this.#insert(item);
    else this.#rowFor(item);
    this.#updateMoreButton();
  }

  /** Insert by date. An item below the last loaded row appears when its page is loaded. */
  #insert(item) {
    const timeOf = (it) => Date.parse(it[this.order]);
    const [below] = this.items.filter((it) => it.id !== item.id && timeOf(it) <= timeOf(item)).sort((one, other) => timeOf(other) - timeOf(one));
    if (!below && this.pager.hasMore) return this.#remove(item.id);
    const row = this.#rowFor(item);
    const { node } = row;
    this.#draw(row);
    keepFocus(this.list, () => this.list.insertBefore(node, below ? this.#rows.get(below.id).node : null));
  }

  /** Remove a row; if it has the focus, its neighbour receives it. */
  #remove(id) {
    const row = this.#rows.get(id);
    if (!row) return;
    const focused = row.node.contains(document.activeElement);
    const neighbour = this.neighbourOf(id, 1)?.node ?? this.neighbourOf(id, -1)?.node;
    this.#forget(id, row);
    this.#updateMoreButton();
    if (focused) (neighbour?.querySelector("button") ?? this.focusFallback).focus({ preventScroll: true });
  }

  #forget(id, row) {
    this.viewport?.remove(row.node);
    row.node.remove();
    this.#rows.delete(id);
  }

  #updateMoreButton() {
    this.more.hidden = !this.pager.hasMore;
    this.onChange();
  }
}
