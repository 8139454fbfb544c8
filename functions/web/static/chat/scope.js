// What the next question is asked of: once the whole library, else a notebook or a note chosen by hand, else the documents
// attached to the conversation, else what it began with. Documents chosen for a new conversation are attached when it begins.

import { inWords, toast } from "../shared/notices.js";

export class Scope extends EventTarget {
  #conversation = null;
  #documents = new Map();
  #attached = new Set();
  #home = null;
  #place = null;
  #own = null;
  #placeFirst = false;
  #once = false;
  #unread = null;
  #told = Promise.resolve();

  constructor({ api }) {
    super();
    this.api = api;
  }

  /** What a question says of it; what the server has attached needs no words. */
  get query() {
    if (this.#once) return { scope: "library" };
    if (this.place) return { [`${this.place.kind}_id`]: this.place.id };
    const ids = [...this.#documents.keys()];
    return ids.every((id) => this.#attached.has(id)) ? {} : { document_ids: ids };
  }

  /** The notebook or note that a question names, `{kind, id, name}`, or null. */
  get place() {
    const hidden = this.#once || (this.#documents.size && !this.#placeFirst);
    return hidden ? null : this.#place;
  }

  /** What is asked when it is not the whole library once: `documents`, `notebook`, `note`, `library`; `loading`, or `unknown`. */
  get standing() {
    if (this.#place && (this.#placeFirst || !this.#documents.size)) return { kind: this.#place.kind, place: this.#place };
    if (this.#documents.size) return { kind: "documents", documents: [...this.#documents] };
    if (this.#unread) return { kind: this.#unread };
    return this.#own ? { kind: this.#own.kind, place: this.#own, isOwn: true } : { kind: "library" };
  }

  /** Whether the next question leaves aside what the conversation is about. */
  get once() {
    return this.#once;
  }

  set once(once) {
    if (this.#once === once) return;
    this.#once = once;
    this.#changed();
  }

  /** Resolves when the server knows what has been attached and detached. */
  get settled() {
    return this.#told;
  }

  has(id) {
    return this.#documents.has(id);
  }

  isPlace(id) {
    return this.#place?.id === id;
  }

  /** Resolves to whether it was done. */
  add({ id, title, file_name: fileName }) {
    this.#documents.set(id, title || fileName);
    this.#placeFirst = false;
    this.#once = false;
    this.#changed();
    return this.#tell((address) => this.api.post(address, { document_ids: [id] }), {
      done: () => this.#attached.add(id), undo: () => this.#documents.delete(id),
    });
  }

  async remove(id) {
    const name = this.#documents.get(id);
    if (!this.#documents.delete(id)) return true;
    this.#changed();
    return this.#tell((address) => this.api.delete(`${address}/${id}`), {
      done: () => this.#attached.delete(id), undo: () => this.#documents.set(id, name),
    });
  }

  toggle(document) {
    return this.has(document.id) ? this.remove(document.id) : this.add(document);
  }

  clear() {
    const before = new Map(this.#documents);
    this.#documents.clear();
    this.#changed();
    return this.#tell((address) => this.api.put(address, { document_ids: [] }), {
      done: () => this.#attached.clear(), undo: () => (this.#documents = before),
    });
  }

  /** The document is gone from the library. */
  forget(id) {
    this.#attached.delete(id);
    if (this.#documents.delete(id)) this.#changed();
  }

  /** Ask a notebook or a note, `{kind, id, name}`; null asks what is asked without it. */
  setPlace(place) {
    this.#place = place;
    this.#placeFirst = place !== null;
    this.#once = false;
    if (!this.#conversation) this.#documents.clear();
    this.#changed();
  }

  /** The place that new conversations begin with. */
  setHome(place) {
    this.#home = place;
    this.setPlace(place);
  }

  /** A notebook or a note has another name. */
  rename(id, name) {
    for (const place of [this.#home, this.#place, this.#own]) if (place?.id === id) place.name = name;
    this.dispatchEvent(new Event("renamed"));
  }

  /** A notebook or a note is gone. */
  release(id) {
    if (![this.#home, this.#place, this.#own].some((place) => place?.id === id)) return;
    const kept = (place) => (place?.id === id ? null : place);
    [this.#home, this.#place, this.#own] = [this.#home, this.#place, this.#own].map(kept);
    this.#changed();
  }

  /** The new conversation has an id; it began with `place`. */
  begin(id, place) {
    this.#conversation = id;
    this.bind(place);
    const ids = [...this.#documents.keys()];
    // What cannot be attached is asked by name.
    if (ids.length) this.#tell((address) => this.api.put(address, { document_ids: ids }), { done: () => ids.forEach((it) => this.#attached.add(it)) });
  }

  /** What the current conversation began with: its questions go there when nothing else is chosen. */
  bind(place) {
    this.#own = place;
    this.#changed();
  }

  /** Another conversation: a new one, without an id, begins where the library is open, an earlier one goes on as it was. */
  enter(id) {
    this.#conversation = id;
    this.#documents.clear();
    this.#attached.clear();
    this.#own = null;
    this.#place = id ? null : this.#home;
    this.#placeFirst = false;
    this.#once = false;
    this.#unread = id ? "loading" : null;
    this.#changed();
    if (id) this.#load(id);
  }

  async #load(id) {
    try {
      const { items } = await this.api.get(`/conversations/${id}/documents`);
      if (this.#conversation !== id) return;
      this.#unread = null;
      for (const item of items) {
        this.#documents.set(item.id, item.title || item.file_name);
        this.#attached.add(item.id);
      }
    } catch (error) {
      if (this.#conversation !== id) return;
      this.#unread = "unknown"; // the server asks what is attached all the same
      if (error.status !== 404) toast(inWords(error), { kind: "bad" });
    }
    this.#changed();
  }

  /** Changes reach the server one after the other; one that it refuses is undone, and said. Resolves to whether it was done. */
  #tell(send, { done, undo = () => {} }) {
    const conversation = this.#conversation;
    if (!conversation) return Promise.resolve(true);
    const refused = (error) => {
      toast(inWords(error), { kind: "bad" });
      return false;
    };
    const told = this.#told.then(() => send(`/conversations/${conversation}/documents`)).then(() => true, refused);
    this.#told = told.then((isDone) => {
      if (this.#conversation !== conversation) return;
      (isDone ? done : undo)();
      if (!isDone) this.#changed();
    });
    return told;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
