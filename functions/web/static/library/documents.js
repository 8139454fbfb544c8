// The documents of the library and the actions on them; every change is an event of Feed.

import { confirm } from "../shared/dialogs.js";
import { Feed } from "../shared/lists/feed.js";
import { cleanName, t } from "../language/i18n.js";
import { report, toast } from "../shared/notices.js";

/** A document is called as its file is, here and in every citation. */
export const titleOf = ({ file_name: name }) => cleanName(name);

/** Whether searches can find the document. */
export const isSearchable = ({ status }) => ["indexed", "reindexing"].includes(status);

const AT_ONCE = 4;

/** One document by its name, several by their number. */
const namesOf = (one, several, items) => (items.length === 1 ? t(one, { name: titleOf(items[0]) }) : t(several, { n: items.length }));

/** Whether a document passes the filters of a list, `{status: [], file_type, lang, added_from}`. */
export function passes(document, { status = [], file_type: type, lang, added_from: from }) {
  return (!status.length || status.includes(document.status)) && (!type || document.file_type === type) && (!lang || document.lang === lang)
    && (!from || document.created_at >= from);
}

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

  /** Hide documents from lists and searches until they are restored, with a way back at once. */
  async trash(items) {
    const done = await this.#each(items, "trash", (it) => this.api.post(`/documents/${it.id}/trash`));
    for (const { id } of done) this.scope.forgetDocument(id);
    if (done.length) toast(namesOf("document.trashed", "document.trashed.several", done), { action: { words: t("undo"), click: () => this.restore(done) }, testid: "trash-receipt" });
  }

  async restore(items) {
    const done = await this.#each(items, "restore", (it) => this.api.post(`/documents/${it.id}/restore`));
    if (done.length) toast(namesOf("document.restored", "document.restored.several", done));
  }

  /** Delete for good, after asking. */
  async removeAll(items) {
    const title = items.length === 1 ? t("delete.documentTitle", { name: titleOf(items[0]) }) : t("delete.documentsTitle", { n: items.length });
    if (!(await confirm({ title, text: t("delete.documentText"), yes: t("delete.yes") }))) return;
    const done = await this.#each(items, "delete", (it) => this.api.delete(`/documents/${it.id}`).then(() => null));
    if (done.length) toast(namesOf("delete.receipt", "delete.receipt.several", done));
  }

  async retryAll(items) {
    await this.#each(items.filter(({ status }) => status === "failed"), "reprocess", (it) => this.api.post(`/documents/${it.id}/retry`));
  }

  async moveAll(items, destination) {
    await this.#each(items, "move", (it) => this.api.patch(`/documents/${it.id}`, destination));
  }

  /**
   * Do the same to each document, a few at a time; `act(document)` resolves to its new state, or to null where it is gone. Resolves to the
   * documents that it worked for; for the others, one message says why and offers another attempt.
   */
  async #each(items, what, act) {
    const [done, failed, waiting] = [[], [], [...items]];
    const notebooks = new Set(items.map((it) => it.notebook_id));
    const work = async () => {
      for (let item = waiting.shift(); item; item = waiting.shift()) {
        try {
          const now = await act(item);
          done.push(item);
          if (now) this.changed(now);
          else this.gone(item);
          notebooks.add(now?.notebook_id);
        } catch (error) {
          if (error.status === 404) this.gone(item);
          else failed.push({ item, error });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    this.moved(...notebooks);
    if (failed.length) {
      const left = failed.map(({ item }) => item);
      const words = left.length === 1 ? t(`failed.${what}`, { name: titleOf(left[0]) }) : t("failed.several", { n: left.length });
      report(failed[0].error, words, () => this.#each(left, what, act));
    }
    return done;
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
