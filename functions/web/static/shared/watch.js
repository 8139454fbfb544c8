// Follows what is being worked on, by long polls that never take all of the browser's connections.

const PATIENT = 20;
const BRIEF = 2;
const SHORTEST_ROUND = 800;
const LONGEST_PAUSE = 20000;

export class StatusWatch {
  #items = new Map();
  #busy = new Set();
  #workers = 0;

  /** Polls `path`/id at most `slots` at a time; `onReplaced(item, other)` when another one answers for it. */
  constructor({ api, path, isMoving, slots, onChange, onGone, onReplaced }) {
    Object.assign(this, { api, path, isMoving, slots, onChange, onGone, onReplaced });
  }

  /** Follow an item while it is moving; forget it once it rests. */
  follow(item) {
    if (!this.isMoving(item)) {
      this.#items.delete(item.id);
      return;
    }
    this.#items.set(item.id, item);
    while (this.#workers < Math.min(this.slots, this.#items.size)) this.#work();
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
      const pause = failures ? Math.min(LONGEST_PAUSE, 1000 * 2 ** failures) : SHORTEST_ROUND - (performance.now() - started);
      if (pause > 0 && this.#items.size) await new Promise((resolve) => setTimeout(resolve, pause));
      await pageShown();
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
    const wait = this.#items.size > this.slots ? BRIEF : PATIENT;
    try {
      const now = await this.api.get(`${this.path}/${item.id}`, { wait, since: item.updated_at });
      if (this.#items.has(item.id)) this.#changed(item, now);
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
    if (this.isMoving(now)) this.#items.set(item.id, now);
    else this.#items.delete(item.id);
    this.onChange(now);
  }
}

/** Nobody looks at a hidden page, so it asks for nothing. */
function pageShown() {
  if (!document.hidden) return null;
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}
