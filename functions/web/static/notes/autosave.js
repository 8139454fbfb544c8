// Keeps a note in step with what is typed: saved after a pause, one request at a time, never over another's change unasked.

const PAUSE = 1000;
const RETRIES = [2000, 5000, 15000, 30000];
const FIELDS = ["title", "content", "notebook_id"];

export class Autosave {
  #saved;
  #theirs = null;
  #running = null;
  #timer = null;
  #failures = 0;
  #state = "saved";

  /**
   * `note` is the one as it was read, its `id` null for one that is not there yet; `read()` gives the fields as they stand.
   * `onState(state, {note, error})` hears `changed`, `saving`, `saved`, `failed`, and three that stop the saving:
   * `conflict` (`note` is theirs), `trashed`, `gone`.
   */
  constructor({ api, note, read, onState }) {
    Object.assign(this, { api, read, onState });
    this.#saved = asTyped(note);
  }

  /** The note as the server last gave it, with the fields as they were sent. */
  get note() {
    return this.#saved;
  }

  get isDirty() {
    return Object.keys(this.#changes()).length > 0;
  }

  get isStopped() {
    return ["conflict", "trashed", "gone"].includes(this.#state);
  }

  /** Something was typed. */
  touch() {
    if (this.isStopped) return;
    clearTimeout(this.#timer);
    if (!this.#running) this.#become(this.isDirty ? "changed" : "saved");
    if (this.isDirty) this.#timer = setTimeout(() => this.flush(), PAUSE);
  }

  /** Save what is unsaved now; resolves to whether everything is saved. */
  async flush() {
    clearTimeout(this.#timer);
    if (!this.isStopped) {
      this.#running ??= this.#saveAll().finally(() => (this.#running = null));
      await this.#running;
    }
    return !this.isDirty;
  }

  /** Resolves to the note's id, made for the purpose where it is not there yet; null where that failed. */
  async ensure() {
    if (!this.#saved.id) {
      await this.flush();
      if (!this.#saved.id && !this.isDirty) await this.#attempt(() => this.#create());
    }
    return this.#saved.id;
  }

  /** After a conflict: what is written here wins. */
  overwrite() {
    this.#saved = this.#theirs;
    this.#become("changed");
    return this.flush();
  }

  /** After a conflict: what is there wins. */
  reload() {
    this.#saved = this.#theirs;
    this.#become("saved");
    return this.#saved;
  }

  /** After it was put into the trash elsewhere: take it out, and go on. */
  async restore() {
    try {
      const theirs = asTyped(await this.api.post(`/notes/${this.#saved.id}/restore`));
      if (FIELDS.every((key) => theirs[key] === this.#saved[key])) {
        this.#saved = theirs;
        this.#become("changed");
        return await this.flush();
      }
      this.#theirs = theirs;
      this.#become("conflict", { note: theirs });
    } catch (error) {
      this.#tryLater(error);
    }
    return false;
  }

  /** After it was deleted elsewhere: what is written here becomes a note of its own. */
  createAnew() {
    this.#saved = { ...this.#saved, id: null, title: "", content: "", notebook_id: null };
    this.#become("changed");
    return this.flush();
  }

  /** News of its indexing, when it is about the text that was saved last. */
  hear(note) {
    if (note.id !== this.#saved.id || note.updated_at !== this.#saved.updated_at) return;
    this.#saved = { ...note, ...this.#fields() };
    if (this.#state === "saved") this.#become("saved");
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
    this.#become("saving");
    try {
      await save();
      this.#failures = 0;
      this.#become("saved");
      return true;
    } catch (error) {
      await this.#failed(error).catch((later) => (later.status === 404 ? this.#become("gone") : this.#tryLater(later)));
      return this.#state === "saved";
    }
  }

  async #create() {
    const fields = this.read();
    this.#saved = { ...(await this.api.post("/notes", fields)), ...fields };
  }

  // The server evens out blanks in titles and the like: what was sent is what the fields are compared with.
  async #update() {
    const changes = this.#changes();
    const { id, updated_at: expected } = this.#saved;
    const fields = { ...this.#fields(), ...changes };
    this.#saved = { ...(await this.api.patch(`/notes/${id}`, { ...changes, expected_updated_at: expected })), ...fields };
  }

  async #failed(error) {
    if (this.#saved.id && [404, 409].includes(error.status)) await this.#compare(error);
    else this.#tryLater(error);
  }

  /** Refused: it is gone, or in the trash, or another's change came first, or our own did and only its answer was lost. */
  async #compare(error) {
    const theirs = asTyped(await this.api.get(`/notes/${this.#saved.id}`));
    const now = this.read();
    if (theirs.trashed_at) {
      this.#become("trashed", { note: theirs });
    } else if (FIELDS.every((key) => theirs[key] === now[key])) {
      this.#saved = theirs;
      this.#become("saved");
    } else if (error.status === 404) {
      this.#tryLater(error); // the notebook is what is not there
    } else {
      this.#theirs = theirs;
      this.#become("conflict", { note: theirs });
    }
  }

  /** What may go better by itself is tried again; what the server does not take waits for another change. */
  #tryLater(error) {
    this.#become("failed", { error });
    const passing = !error.status || error.status === 429 || error.status >= 500;
    if (passing) this.#timer = setTimeout(() => this.flush(), RETRIES[Math.min(this.#failures++, RETRIES.length - 1)]);
  }

  #become(state, { note = this.#saved, error = null } = {}) {
    this.#state = state;
    this.onState(state, { note, error });
  }
}

/** Text fields know one kind of line end: to show a note is not to change it. */
const asTyped = (note) => ({ ...note, content: note.content.replace(/\r\n?/g, "\n") });
