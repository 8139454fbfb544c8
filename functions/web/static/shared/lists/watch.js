// Watches items that are being processed by long polling, without using all of the browser's connections.

const LONG_WAIT_SECONDS = 20;
const SHORT_WAIT_SECONDS = 2;
const SHORTEST_INTERVAL_MS = 800;
const LONGEST_PAUSE_MS = 20000;

export class StatusWatch {
  #items = new Map();
  #busy = new Set();
  #workers = 0;

  /** Runs at most `maxPolls` polls of `path`/id at a time; `onReplaced(item, existing)` reports that an item is a duplicate. */
  constructor({ api, path, isInProgress, maxPolls, onChange, onGone, onReplaced }) {
    Object.assign(this, { api, path, isInProgress, maxPolls, onChange, onGone, onReplaced });
  }

  /** Watch an item while it is in progress, and forget it afterwards. */
  follow(item) {
    if (!this.isInProgress(item)) {
      this.#items.delete(item.id);
      return;
    }
    this.#items.set(item.id, item);
    while (this.#workers < Math.min(this.maxPolls, this.#items.size)) this.#work();
  }

  forget(id) {
    this.#items.delete(id);
  }

  async #work() {
    this.#workers += 1;
    let failures = 0;
    for (let next = this.#next(); next; next = this.#next()) {
      const started = performance.now();
      this.#busy.add(next.id);
      failures = (await this.#poll(next)) ? 0 : failures + 1;
      this.#busy.delete(next.id);
      const pause = failures ? Math.min(LONGEST_PAUSE_MS, 1000 * 2 ** failures) : SHORTEST_INTERVAL_MS - (performance.now() - started);
      if (pause > 0 && this.#items.size) await new Promise((resolve) => setTimeout(resolve, pause));
      await untilPageIsVisible();
    }
    this.#workers -= 1;
  }

  /** The item that has waited longest: a Map keeps the order of insertion. */
  #next() {
    const next = [...this.#items.values()].find(({ id }) => !this.#busy.has(id));
    if (next) {
      this.#items.delete(next.id);
      this.#items.set(next.id, next);
    }
    return next;
  }

  async #poll(item) {
    const wait = this.#items.size > this.maxPolls ? SHORT_WAIT_SECONDS : LONG_WAIT_SECONDS;
    try {
      const now = await this.api.get(`${this.path}/${item.id}`, { wait, since: item.updated_at });
      const latest = this.#items.get(item.id);
      // An answer from before the last save is no news: the item is asked for again.
      const isOld = latest && now.id === item.id && Date.parse(now.updated_at) < Date.parse(latest.updated_at);
      if (latest && !isOld) this.#changed(item, now);
      return true;
    } catch (error) {
      if (error.status !== 404) return false;
      if (this.#items.delete(item.id)) this.onGone(item);
      return true;
    }
  }

  #changed(item, now) {
    if (now.id !== item.id) {
      this.#items.delete(item.id);
      this.onReplaced(item, now);
      return;
    }
    if (this.isInProgress(now)) this.#items.set(item.id, now);
    else this.#items.delete(item.id);
    this.onChange(now);
  }
}

/** A hidden page does not poll. */
function untilPageIsVisible() {
  if (!document.hidden) return null;
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}
