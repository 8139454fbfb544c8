// The notes of the library and what can be done with one; see Feed for who hears of it.

import { choose, confirm } from "../shared/dialogs.js";
import { Feed } from "../shared/feed.js";
import { t } from "../shared/i18n.js";
import { inWords, toast } from "../shared/notices.js";

export const titleOf = (note) => note.title || t("note.untitled");

/** Beside the events of a feed: `attachments` when those of a note come or go with it. */
export class Notes extends Feed {
  constructor({ api, scope }) {
    super({ api, path: "/notes", slots: 1, isMoving: ({ status }) => status === "queued" });
    this.scope = scope;
  }

  gone(note) {
    this.scope.release(note.id);
    super.gone(note);
  }

  /** Out of sight and out of every search, with its attachments, until it is restored. Resolves to whether it is. */
  trash(note) {
    this.scope.release(note.id);
    return this.#put(note, "trash", "note.trashed");
  }

  restore(note) {
    return this.#put(note, "restore", "note.restored");
  }

  async reindex(note) {
    try {
      this.changed(await this.api.post(`/notes/${note.id}/reindex`));
    } catch (error) {
      toast(inWords(error), { kind: "bad" });
    }
  }

  /** For good; asks first, and what is to become of its attachments. Resolves to whether it is gone. */
  async remove(note) {
    const attachments = await this.#askWhetherToRemove(note);
    if (!attachments) return false;
    try {
      await this.api.delete(`/notes/${note.id}?attachments=${attachments}`);
      toast(t("note.deleted", { name: titleOf(note) }));
    } catch (error) {
      if (error.status !== 404) {
        toast(inWords(error), { kind: "bad" });
        return false;
      }
    }
    this.gone(note);
    this.#placed(note);
    return true;
  }

  async #askWhetherToRemove(note) {
    const title = t("delete.noteTitle", { name: titleOf(note) });
    if (!note.attachment_count) return (await confirm({ title, text: t("delete.noteText"), yes: t("delete.yes") })) ? "delete" : null;
    return choose({
      title, text: t("delete.noteWithAttachments", { n: note.attachment_count }),
      options: [{ value: "keep", words: t("delete.onlyNote") }, { value: "delete", words: t("delete.everything"), danger: true }],
    });
  }

  async #put(note, action, words) {
    try {
      const now = await this.api.post(`/notes/${note.id}/${action}`);
      this.changed(now);
      this.#placed(now);
      toast(t(words, { name: titleOf(now) }));
      return true;
    } catch (error) {
      if (error.status === 404) this.gone(note);
      toast(inWords(error), { kind: "bad" });
      return false;
    }
  }

  #placed(note) {
    this.moved(note.notebook_id);
    if (note.attachment_count) this.dispatchEvent(new Event("attachments"));
  }
}
