// Loads a list from the server page by page.

export class Pager {
  #loads = 0;
  #cursor = null;

  constructor({ api, path }) {
    Object.assign(this, { api, path });
  }

  get hasMore() {
    return this.#cursor !== null;
  }

  /** The items of the first page, or of the next one; null if a newer request was made meanwhile. */
  async load(query, { next = false } = {}) {
    const load = ++this.#loads;
    try {
      const page = await this.api.get(this.path, { ...query, cursor: next ? this.#cursor : null });
      if (load !== this.#loads) return null;
      this.#cursor = page.next_cursor;
      return page.items;
    } catch (error) {
      if (load !== this.#loads) return null;
      throw error;
    }
  }

  /** Start over; a request that is still running is ignored. */
  reset() {
    this.#loads += 1;
    this.#cursor = null;
  }
}
