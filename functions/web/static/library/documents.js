// The documents of the library and the actions on them; every change is an event of Feed.

import { confirm } from "../shared/dialogs.js";
import { Feed } from "../shared/feed.js";
import { cleanName, t } from "../language/i18n.js";
import { report, toast } from "../shared/notices.js";

/** A document is called as its file is, here and in every citation. */
export const titleOf = ({ file_name: name }) => cleanName(name);

/** Whether searches can find the document. */
export const isSearchable = ({ status }) => ["indexed", "reindexing"].includes(status);

export class Documents extends Feed {
  constructor({ api, scope }) {
    super({ api, path: "/documents", maxPolls: 2, isInProgress: ({ status }) => ["uploaded", "processing", "reindexing"].includes(status) });
    this.scope = scope;
  }

  gone(document) {
    this.scope.forgetDocument(document.id);
    super.gone(document);
  }

  /** The file turned out to be a duplicate: remove the row that represented it. */
  replaced(document, existing) {
    super.replaced(document, existing);
    this.dispatchEvent(new CustomEvent("duplicate", { detail: { document, existing } }));
  }

  async remove(document) {
    const name = titleOf(document);
    if (!(await confirm({ title: t("delete.documentTitle", { name }), text: t("delete.documentText"), yes: t("delete.yes") }))) return;
    try {
      await this.api.delete(`/documents/${document.id}`);
      toast(t("delete.receipt", { name }));
    } catch (error) {
      if (error.status !== 404) return report(error, t("failed.delete", { name }));
    }
    this.gone(document);
    this.moved(document.notebook_id);
  }

  /** `retry` or `reindex` a document. */
  async reprocess(document, action) {
    try {
      this.changed(await this.api.post(`/documents/${document.id}/${action}`));
    } catch (error) {
      report(error, t("failed.reprocess", { name: titleOf(document) }), () => this.reprocess(document, action));
    }
  }

  /** Move to `{notebook_id?, note_id?}`; null takes it out. Resolves to the document, or to null after showing the error. */
  async move(document, destination) {
    try {
      const moved = await this.api.patch(`/documents/${document.id}`, destination);
      this.changed(moved);
      this.moved(document.notebook_id, moved.notebook_id);
      return moved;
    } catch (error) {
      report(error, t("failed.move", { name: titleOf(document) }));
      return null;
    }
  }
}
