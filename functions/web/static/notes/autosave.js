// Saves a note after a pause in typing, one request at a time. Never overwrites a change from elsewhere without asking.

const SAVE_DELAY_MS = 1000;
const RETRY_DELAYS_MS = [2000, 5000, 15000, 30000];
const FIELDS = ["title", "content", "notebook_id"];

export class Autosave {
  #saved;
  #theirs = null;
  #running = null;
  #timer = null;
  #failures = 0;
  #state = "saved";

  /**
   * `note` is the saved note; the `id` of a new one is null. `read()` returns the fields as currently typed.
   * `onState(state, {note, error})` receives `changed`, `saving`, `saved`, `failed`, and three states that stop saving:
   * `conflict` (`note` is the version on the server), `trashed` and `gone`.
   */
  constructor({ api, note, read, onState }) {
    Object.assign(this, { api, read, onState });
    this.#saved = withLineFeeds(note);
  }

  /** The note as last returned by the server, with the fields as they were sent. */
  get note() {
    return this.#saved;
  }

  get isDirty() {
    return Object.keys(this.#changes()).length > 0;
  }

  get isStopped() {
    return ["conflict", "trashed", "gone"].includes(this.#state);
  }

  /** Call after every input. */
  scheduleSave() {
    if (this.isStopped) return;
    clearTimeout(this.#timer);
    if (!this.#running) this.#setState(this.isDirty ? "changed" : "saved");
    if (this.isDirty) this.#timer = setTimeout(() => this.flush(), SAVE_DELAY_MS);
  }

  /** Save now; resolves to whether everything is saved. */
  async flush() {
    clearTimeout(this.#timer);
    if (!this.isStopped) {
      this.#running ??= this.#saveAll().finally(() => (this.#running = null));
      await this.#running;
    }
    return !this.isDirty;
  }

  /** Create the note if it is new; resolves to its id, or to null where that failed. */
  async ensureSaved() {
    if (!this.#saved.id) {
      await this.flush();
      if (!this.#saved.id && !this.isDirty) await this.#attempt(() => this.#create());
    }
    return this.#saved.id;
  }

  /** Resolve a conflict in favour of the text typed here. */
  overwrite() {
    this.#saved = this.#theirs;
    this.#setState("changed");
    return this.flush();
  }

  /** Resolve a conflict in favour of the version on the server. */
  reload() {
    this.#saved = this.#theirs;
    this.#setState("saved");
    return this.#saved;
  }

  /** Restore a note that was moved to the trash elsewhere, and save. */
  async restore() {
    try {
      const theirs = withLineFeeds(await this.api.post(`/notes/${this.#saved.id}/restore`));
      if (FIELDS.every((key) => theirs[key] === this.#saved[key])) {
        this.#saved = theirs;
        this.#setState("changed");
        return await this.flush();
      }
      this.#theirs = theirs;
      this.#setState("conflict", { note: theirs });
    } catch (error) {
      this.#retryLater(error);
    }
    return false;
  }

  /** Save the text of a note that was deleted elsewhere as a new note. */
  saveAsNew() {
    this.#saved = { ...this.#saved, id: null, title: "", content: "", notebook_id: null };
    this.#setState("changed");
    return this.flush();
  }

  /** Take over the indexing status if it is about the text that was saved last. */
  acceptIndexing(note) {
    if (note.id !== this.#saved.id || note.updated_at !== this.#saved.updated_at) return;
    this.#saved = { ...note, ...this.#fields() };
    if (this.#state === "saved") this.#setState("saved");
  }

  close() {
    clearTimeout(this.#timer);
  }

  #fields() {
    return Object.fromEntries(FIELDS.map((key) => [key, this.#saved[key]]));
  }

  #changes() {
    const now = this.read();
    return Object.fromEntries(FIELDS.filter((key) => now[key] !== this.#saved[key]).map((key) => [key, now[key]]));
  }

  async #saveAll() {
    while (this.isDirty && !this.isStopped) {
      if (!(await this.#attempt(() => (this.#saved.id ? this.#update() : this.#create())))) return;
    }
  }

  async #attempt(save) {
    this.#setState("saving");
    try {
      await save();
      this.#failures = 0;
      this.#setState("saved");
      return true;
    } catch (error) {
      await this.#handleError(error).catch((cause) => (cause.status === 404 ? this.#setState("gone") : this.#retryLater(cause)));
      return this.#state === "saved";
    }
  }

  async #create() {
    const fields = this.read();
    this.#saved = { ...(await this.api.post("/notes", fields)), ...fields };
  }

  // The server normalizes fields, such as spaces in titles, so later input is compared with what was sent.
  async #update() {
    const changes = this.#changes();
    const { id, updated_at: expected } = this.#saved;
    const fields = { ...this.#fields(), ...changes };
    this.#saved = { ...(await this.api.patch(`/notes/${id}`, { ...changes, expected_updated_at: expected })), ...fields };
  }

  async #handleError(error) {
    if (this.#saved.id && [404, 409].includes(error.status)) await this.#resolveRefusal(error);
    else this.#retryLater(error);
  }

  /** Find out why saving was refused: deleted, trashed, changed elsewhere, or saved by us with the response lost. */
  async #resolveRefusal(error) {
    const theirs = withLineFeeds(await this.api.get(`/notes/${this.#saved.id}`));
    const now = this.read();
    if (theirs.trashed_at) {
      this.#setState("trashed", { note: theirs });
    } else if (FIELDS.every((key) => theirs[key] === now[key])) {
      this.#saved = theirs;
      this.#setState("saved");
    } else if (error.status === 404) {
      this.#retryLater(error); // the notebook is missing, not the note
    } else {
      this.#theirs = theirs;
      this.#setState("conflict", { note: theirs });
    }
  }

  /** Retry temporary errors; after any other error, wait for the next change. */
  #retryLater(error) {
    this.#setState("failed", { error });
    const isTemporary = !error.status || error.status === 429 || error.status >= 500;
    if (isTemporary) this.#timer = setTimeout(() => this.flush(), RETRY_DELAYS_MS[Math.min(this.#failures++, RETRY_DELAYS_MS.length - 1)]);
  }

  #setState(state, { note = this.#saved, error = null } = {}) {
    this.#state = state;
    this.onState(state, { note, error });
  }
}

/** Text fields convert all line endings to LF, which must not count as a change. */
const withLineFeeds = (note) => ({ ...note, content: note.content.replace(/\r\n?/g, "\n") });
