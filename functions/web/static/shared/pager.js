// A list that the server gives page by page.

export class Pager {
  #loads = 0;
  #cursor = null;

  constructor({ api, path }) {
    Object.assign(this, { api, path });
  }

  get hasMore() {
    return this.#cursor !== null;
  }

  /** The first page's items, or the next one's; null once a newer request has overtaken this one. */
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

  /** Forget where the list was; what is still on its way counts no more. */
  reset() {
    this.#loads += 1;
    this.#cursor = null;
  }
}
