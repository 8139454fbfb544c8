// Follows documents that are being worked on, by long polls that never take all of the browser's connections.

const SLOTS = 2;
const PATIENT = 20;
const BRIEF = 2;
const SHORTEST_ROUND = 1500;
const LONGEST_PAUSE = 20000;

export const isMoving = (document) => ["uploaded", "processing", "reindexing"].includes(document.status);

export class StatusWatch {
  #documents = new Map();
  #busy = new Set();
  #workers = 0;

  constructor({ api, onChange, onGone }) {
    Object.assign(this, { api, onChange, onGone });
  }

  /** Follow a document while it is moving; forget it once it rests. */
  follow(document) {
    if (!isMoving(document)) {
      this.#documents.delete(document.id);
      return;
    }
    this.#documents.set(document.id, document);
    while (this.#workers < Math.min(SLOTS, this.#documents.size)) this.#work();
  }

  forget(id) {
    this.#documents.delete(id);
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
      if (pause > 0 && this.#documents.size) await new Promise((resolve) => setTimeout(resolve, pause));
      await pageShown();
    }
    this.#workers -= 1;
  }

  /** The document that has waited longest: a Map keeps the order of insertion. */
  #next() {
    const next = [...this.#documents.values()].find(({ id }) => !this.#busy.has(id));
    if (next) {
      this.#documents.delete(next.id);
      this.#documents.set(next.id, next);
    }
    return next;
  }

  async #poll(document) {
    const wait = this.#documents.size > SLOTS ? BRIEF : PATIENT;
    try {
      const now = await this.api.get(`/documents/${document.id}`, { wait, since: document.updated_at });
      if (this.#documents.has(document.id)) this.#changed(now);
      return true;
    } catch (error) {
      if (error.status !== 404) return false;
      if (this.#documents.delete(document.id)) this.onGone(document.id);
      return true;
    }
  }

  #changed(document) {
    if (isMoving(document)) this.#documents.set(document.id, document);
    else this.#documents.delete(document.id);
    this.onChange(document);
  }
}

/** Nobody looks at a hidden page, so it asks for nothing. */
function pageShown() {
  if (!document.hidden) return null;
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}
