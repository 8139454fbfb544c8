// The documents of the library and what can be done with one; see Feed for who hears of it.

import { confirm } from "../shared/dialogs.js";
import { Feed } from "../shared/feed.js";
import { t } from "../shared/i18n.js";
import { inWords, toast } from "../shared/notices.js";

export const titleOf = (document) => document.title || document.file_name;

/** Whether a question can be asked of it. */
export const canBeAsked = ({ status }) => ["indexed", "reindexing"].includes(status);

export class Documents extends Feed {
  constructor({ api, scope }) {
    super({ api, path: "/documents", slots: 2, isMoving: ({ status }) => ["uploaded", "processing", "reindexing"].includes(status) });
    this.scope = scope;
  }

  gone(document) {
    this.scope.forget(document.id);
    super.gone(document);
  }

  /** The bytes were here already: the row that stood for them goes. */
  replaced(document, twin) {
    super.replaced(document, twin);
    this.dispatchEvent(new CustomEvent("duplicate", { detail: { document, twin } }));
  }

  async remove(document) {
    const name = titleOf(document);
    if (!(await confirm({ title: t("delete.documentTitle", { name }), text: t("delete.documentText"), yes: t("delete.yes") }))) return;
    try {
      const receipt = await this.api.delete(`/documents/${document.id}`);
      toast(t("delete.receipt", { name, pages: receipt?.removed?.pages ?? 0, chunks: receipt?.removed?.chunks ?? 0 }));
    } catch (error) {
      if (error.status !== 404) return toast(inWords(error), { kind: "bad" });
    }
    this.gone(document);
    this.moved(document.notebook_id);
  }

  /** `retry` or `reindex` a document. */
  async again(document, action) {
    try {
      this.changed(await this.api.post(`/documents/${document.id}/${action}`));
    } catch (error) {
      toast(inWords(error), { kind: "bad" });
    }
  }

  /** Put it into a notebook or a note, or with null out of it. Resolves to the document, or to null with the fault shown. */
  async move(document, place) {
    try {
      const moved = await this.api.patch(`/documents/${document.id}`, place);
      this.changed(moved);
      this.moved(document.notebook_id, moved.notebook_id);
      return moved;
    } catch (error) {
      toast(inWords(error), { kind: "bad" });
      return null;
    }
  }
}
