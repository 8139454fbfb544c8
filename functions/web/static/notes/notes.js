// The notes of the library and the actions on them; every change is an event of Feed.

import { choose, confirm } from "../shared/dialogs.js";
import { Feed } from "../shared/lists/feed.js";
import { cleanName, t } from "../language/i18n.js";
import { report, toast } from "../shared/notices.js";

export const titleOf = (note) => cleanName(note.title) || t("note.untitled");

/** Events in addition to those of Feed: `attachments` when attachments are hidden, restored or deleted with their note. */
export class Notes extends Feed {
  constructor({ api, scope }) {
    super({ api, path: "/notes", maxPolls: 1, isInProgress: ({ status }) => status === "queued" });
    this.scope = scope;
  }

  gone(note) {
    this.scope.forgetTarget(note.id);
    super.gone(note);
  }

  /** Hide a note and its attachments from lists and searches until it is restored. Resolves to whether that succeeded. */
  trash(note) {
    this.scope.forgetTarget(note.id);
    return this.#postAction(note, "trash", "note.trashed");
  }

  restore(note) {
    return this.#postAction(note, "restore", "note.restored");
  }

  /** Delete permanently after asking, also about the attachments. Resolves to whether the note was deleted. */
  async remove(note) {
    const attachments = await this.#confirmRemoval(note);
    if (!attachments) return false;
    try {
      await this.api.delete(`/notes/${note.id}?attachments=${attachments}`);
      toast(t("note.deleted", { name: titleOf(note) }));
    } catch (error) {
      if (error.status !== 404) {
        report(error, t("failed.delete", { name: titleOf(note) }));
        return false;
      }
    }
    this.gone(note);
    this.#tellLists(note);
    return true;
  }

  async #confirmRemoval(note) {
    const title = t("delete.noteTitle", { name: titleOf(note) });
    if (!note.attachment_count) return (await confirm({ title, text: t("delete.noteText"), yes: t("delete.yes") })) ? "delete" : null;
    return choose({
      title, text: t("delete.noteWithAttachments", { n: note.attachment_count }),
      options: [{ value: "keep", words: t("delete.onlyNote") }, { value: "delete", words: t("delete.everything"), danger: true }],
    });
  }

  async #postAction(note, action, words) {
    try {
      const now = await this.api.post(`/notes/${note.id}/${action}`);
      this.changed(now);
      this.#tellLists(now);
      toast(t(words, { name: titleOf(now) }));
      return true;
    } catch (error) {
      if (error.status === 404) this.gone(note);
      report(error, t(`failed.${action}`, { name: titleOf(note) }), () => this.#postAction(note, action, words));
      return false;
    }
  }

  #tellLists(note) {
    this.moved(note.notebook_id);
    if (note.attachment_count) this.dispatchEvent(new Event("attachments"));
  }
}
