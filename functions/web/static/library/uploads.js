// Files on their way into the library, a few at a time.

import { t } from "../shared/i18n.js";
import { inWords } from "../shared/notices.js";
import { titleOf } from "./documents.js";
import { sendFile } from "./upload.js";
import { UploadRow } from "./upload_row.js";

const AT_ONCE = 2;

export class Uploads {
  #arriving = new Set();
  #queue = [];
  #running = 0;

  /** `list` shows them where no other is given; `onSettle()` when one more or one less is under way. */
  constructor({ documents, list, onSettle }) {
    Object.assign(this, { documents, list, onSettle });
    documents.addEventListener("duplicate", ({ detail: { document, twin } }) => this.#showTwin(document, twin));
  }

  get waiting() {
    return this.#queue.length + this.#running;
  }

  /** Whether a document is still shown by the row of its upload. */
  isArriving(id) {
    return this.#arriving.has(id);
  }

  /** Take in files; `place` is where they are kept: `{notebook_id?, note_id?}`. */
  add(files, { place = {}, list = this.list } = {}) {
    for (const file of files) {
      const stop = new AbortController();
      const row = new UploadRow(file, { onDismiss: () => this.#dismiss(upload) });
      const upload = { file, place, row, stop };
      this.#queue.push(upload);
      list.append(row.node);
    }
    this.#pump();
    this.onSettle();
  }

  /** Their rows go on in the library's own list. */
  adopt(list) {
    this.list.append(...list.children);
    this.onSettle();
  }

  #dismiss(upload) {
    upload.stop.abort();
    upload.row.node.remove();
    this.#queue = this.#queue.filter((waiting) => waiting !== upload);
    this.onSettle();
  }

  #pump() {
    while (this.#running < AT_ONCE && this.#queue.length) {
      this.#running += 1;
      this.#send(this.#queue.shift()).finally(() => {
        this.#running -= 1;
        this.#pump();
        this.onSettle();
      });
    }
  }

  async #send({ file, place, row, stop }) {
    let arriving = null;
    const onStep = ({ state, share, document }) => {
      if (document) this.#arriving.add((arriving = document.id));
      row.show(state, { share });
    };
    try {
      const { document, duplicate } = await sendFile(this.documents.api, file, { place, onStep, signal: stop.signal });
      this.#arriving.delete(arriving);
      if (duplicate) this.#showDuplicate(row, document, place);
      else row.node.remove();
      this.documents.changed(document);
      this.documents.moved(document.notebook_id);
    } catch (error) {
      this.#arriving.delete(arriving);
      if (error.name === "AbortError") await this.#abandon(arriving);
      else row.show("failed", { words: inWords(error) });
    }
  }

  /** A stopped upload leaves nothing behind. */
  async #abandon(id) {
    if (id) await this.documents.api.delete(`/documents/${id}`).catch(() => {});
  }

  /** The bytes are here already; where they are kept elsewhere, they can be moved to where they were wanted. */
  #showDuplicate(row, document, place) {
    const elsewhere = Object.entries(place).some(([key, id]) => id && document[key] !== id);
    const move = async () => {
      if (await this.documents.move(document, place)) row.node.remove();
      this.onSettle();
    };
    row.show("duplicate", {
      words: t("upload.duplicate", { name: titleOf(document) }),
      action: elsewhere ? { words: t(place.note_id ? "upload.attachHere" : "upload.moveHere"), click: move } : null,
    });
  }

  /** Found to be a duplicate only when its bytes were read. */
  #showTwin(document, twin) {
    const row = new UploadRow({ name: document.file_name, size: document.size_bytes }, { onDismiss: () => (row.node.remove(), this.onSettle()) });
    this.list.append(row.node);
    const { notebook_id, note_id } = document;
    this.#showDuplicate(row, twin, { notebook_id, note_id });
    this.onSettle();
  }
}
