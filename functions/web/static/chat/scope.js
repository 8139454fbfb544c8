// The search scope of the next question. In order of precedence: the whole library, if chosen for one question; the target (a
// notebook or a note), unless documents were attached after it; the attached documents; the conversation's first target.
// Documents chosen for a new conversation are attached when its first question gives it an id.

import { cleanName, t } from "../language/i18n.js";
import { report } from "../shared/notices.js";

export class Scope extends EventTarget {
  #conversation = null;
  #documents = new Map();
  #attached = new Set();
  #defaultTarget = null;
  #target = null;
  #origin = null;
  #targetChosenLast = false;
  #wholeLibraryOnce = false;
  #loadState = null;
  #syncing = Promise.resolve();

  constructor({ api }) {
    super();
    this.api = api;
  }

  /** The scope as fields of a question; empty where the server already knows it, as with attached documents. */
  get requestFields() {
    if (this.#wholeLibraryOnce) return { scope: "library" };
    if (this.target) return { [`${this.target.kind}_id`]: this.target.id };
    const ids = [...this.#documents.keys()];
    return ids.every((id) => this.#attached.has(id)) ? {} : { document_ids: ids };
  }

  /** The notebook or note that the next question names, `{kind, id, name}`, or null. */
  get target() {
    const hidden = this.#wholeLibraryOnce || (this.#documents.size && !this.#targetChosenLast);
    return hidden ? null : this.#target;
  }

  /** The scope without `wholeLibraryOnce`; its `kind` is `documents`, `notebook`, `note`, `library`, `loading` or `unknown`. */
  get current() {
    if (this.#target && (this.#targetChosenLast || !this.#documents.size)) return { kind: this.#target.kind, target: this.#target };
    if (this.#documents.size) return { kind: "documents", documents: [...this.#documents] };
    if (this.#loadState) return { kind: this.#loadState };
    return this.#origin ? { kind: this.#origin.kind, target: this.#origin, isOrigin: true } : { kind: "library" };
  }

  /** Whether the next question, and only that, searches the whole library. */
  get wholeLibraryOnce() {
    return this.#wholeLibraryOnce;
  }

  set wholeLibraryOnce(enabled) {
    if (this.#wholeLibraryOnce === enabled) return;
    this.#wholeLibraryOnce = enabled;
    this.#changed();
  }

  /** Resolves once the server knows every document that was attached or detached. */
  get synced() {
    return this.#syncing;
  }

  has(id) {
    return this.#documents.has(id);
  }

  isTarget(id) {
    return this.#target?.id === id;
  }

  /** Attach a document; resolves to whether the server accepted it. */
  add({ id, file_name: fileName }) {
    this.#documents.set(id, cleanName(fileName));
    this.#targetChosenLast = false;
    this.#wholeLibraryOnce = false;
    this.#changed();
    return this.#sync((address) => this.api.post(address, { document_ids: [id] }), {
      done: () => this.#attached.add(id), undo: () => this.#documents.delete(id),
    });
  }

  async remove(id) {
    const name = this.#documents.get(id);
    if (!this.#documents.delete(id)) return true;
    this.#changed();
    return this.#sync((address) => this.api.delete(`${address}/${id}`), {
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
    return this.#sync((address) => this.api.put(address, { document_ids: [] }), {
      done: () => this.#attached.clear(), undo: () => (this.#documents = before),
    });
  }

  /** The document was deleted from the library. */
  forgetDocument(id) {
    this.#attached.delete(id);
    if (this.#documents.delete(id)) this.#changed();
  }

  /** Search a notebook or a note, `{kind, id, name}`; null returns to the scope that applies without one. */
  setTarget(target) {
    this.#target = target;
    this.#targetChosenLast = target !== null;
    this.#wholeLibraryOnce = false;
    if (!this.#conversation) this.#documents.clear();
    this.#changed();
  }

  /** The target of new conversations. */
  setDefaultTarget(target) {
    this.#defaultTarget = target;
    this.setTarget(target);
  }

  /** A notebook or a note was renamed. */
  renameTarget(id, name) {
    for (const target of [this.#defaultTarget, this.#target, this.#origin]) if (target?.id === id) target.name = name;
    this.dispatchEvent(new Event("renamed"));
  }

  /** A notebook or a note was deleted or moved to the trash. */
  forgetTarget(id) {
    if (![this.#defaultTarget, this.#target, this.#origin].some((target) => target?.id === id)) return;
    const kept = (target) => (target?.id === id ? null : target);
    [this.#defaultTarget, this.#target, this.#origin] = [this.#defaultTarget, this.#target, this.#origin].map(kept);
    this.#changed();
  }

  /** The new conversation has received its id; its first question searched `target`. */
  startConversation(id, target) {
    this.#conversation = id;
    this.setOrigin(target);
    const ids = [...this.#documents.keys()];
    // Documents that cannot be attached are named in each question instead.
    if (ids.length) this.#sync((address) => this.api.put(address, { document_ids: ids }), { done: () => ids.forEach((it) => this.#attached.add(it)) });
  }

  /** The target that the conversation started with: it applies when nothing else is chosen. */
  setOrigin(target) {
    this.#origin = target;
    this.#changed();
  }

  /** Switch to a conversation. A new one, whose id is null, starts with the default target; an earlier one keeps its scope. */
  openConversation(id) {
    this.#conversation = id;
    this.#documents.clear();
    this.#attached.clear();
    this.#origin = null;
    this.#target = id ? null : this.#defaultTarget;
    this.#targetChosenLast = false;
    this.#wholeLibraryOnce = false;
    this.#loadState = id ? "loading" : null;
    this.#changed();
    if (id) this.#load(id);
  }

  async #load(id) {
    try {
      const { items } = await this.api.get(`/conversations/${id}/documents`);
      if (this.#conversation !== id) return;
      this.#loadState = null;
      for (const item of items) {
        this.#documents.set(item.id, cleanName(item.file_name));
        this.#attached.add(item.id);
      }
    } catch (error) {
      if (this.#conversation !== id) return;
      this.#loadState = "unknown"; // the server searches the attached documents all the same
      if (error.status !== 404) report(error, t("failed.scopeLoad"), () => this.#load(id));
    }
    this.#changed();
  }

  /** Send one change after the other; a rejected one is undone and reported. Resolves to whether it was accepted. */
  #sync(send, { done, undo = () => {} }) {
    const conversation = this.#conversation;
    if (!conversation) return Promise.resolve(true);
    const refused = (error) => {
      report(error, t("failed.scope"));
      return false;
    };
    const accepted = this.#syncing.then(() => send(`/conversations/${conversation}/documents`)).then(() => true, refused);
    this.#syncing = accepted.then((isDone) => {
      if (this.#conversation !== conversation) return;
      (isDone ? done : undo)();
      if (!isDone) this.#changed();
    });
    return accepted;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
