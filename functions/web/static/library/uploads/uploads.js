// The queue of uploads, a few at a time.

import { t } from "../../language/i18n.js";
import { el } from "../../shared/dom.js";
import { errorText } from "../../shared/notices.js";
import { titleOf } from "../documents.js";
import { failureText } from "../../shared/status.js";
import { Tray } from "./tray.js";
import { ACCEPTED, sendFile } from "./upload.js";
import { UploadRow } from "./upload_row.js";

const MAX_RUNNING = 2;

export class Uploads {
  #uploading = new Set();
  #queue = [];
  #running = 0;

  /** `list` is the default list for the rows; `onChange()` is called when an upload starts or ends. */
  constructor({ documents, list, onChange }) {
    Object.assign(this, { documents, list, onChange });
    this.tray = new Tray({ onDismiss: () => this.#dismissOver() });
    documents.addEventListener("change", ({ detail }) => this.#follow(detail));
    documents.addEventListener("gone", ({ detail }) => this.tray.has(detail.id) && this.tray.drop(detail.id));
    documents.addEventListener("duplicate", ({ detail: { document, existing } }) => this.#showLateDuplicate(document, existing));
  }

  get unfinished() {
    return this.#queue.length + this.#running;
  }

  /** Whether a document is still shown by the row of its upload. */
  isUploading(id) {
    return this.#uploading.has(id);
  }

  /** Queue files for upload to `destination`, `{notebook_id?, note_id?}`. */
  add(files, { destination = {}, list = this.list } = {}) {
    for (const file of files) {
      const stop = new AbortController();
      const row = new UploadRow(file, { onDismiss: () => this.#dismiss(upload) });
      const upload = { file, destination, row, stop };
      this.#queue.push(upload);
      this.tray.set(upload, "queued", { name: file.name });
      list.append(row.node);
    }
    this.#startNext();
    this.onChange();
  }

  /** Ask for the file of a document that never arrived, and upload it in its place. */
  chooseAgain(document) {
    const input = el("input", { type: "file", accept: ACCEPTED, "data-testid": "upload-again-input" });
    input.addEventListener("change", async () => {
      await this.#deleteStopped(document.id);
      this.documents.gone(document);
      const { notebook_id, note_id } = document;
      this.add([...input.files], { destination: Object.fromEntries(Object.entries({ notebook_id, note_id }).filter(([, id]) => id)) });
    });
    input.click();
  }

  /** Move the rows of `list` to the default list. */
  takeOver(list) {
    this.list.append(...list.children);
    this.onChange();
  }

  #dismiss(upload) {
    upload.stop.abort();
    upload.row.node.remove();
    this.tray.drop(upload);
    this.#queue = this.#queue.filter((waiting) => waiting !== upload);
    this.onChange();
  }

  /** The rows of refused files and duplicates go with the tray. */
  #dismissOver() {
    for (const node of [...this.list.children]) if (["failed", "duplicate"].includes(node.dataset.state)) node.remove();
    this.onChange();
  }

  /** What becomes of a file once its document is read. */
  #follow(document) {
    if (!this.tray.has(document.id)) return;
    const { status } = document;
    if (status === "indexed" || document.trashed_at) return this.tray.set(document.id, "ready");
    if (status !== "failed") return this.tray.set(document.id, status === "uploaded" ? "waiting" : "reading", { document });
    this.tray.set(document.id, "failed");
    const row = new UploadRow({ name: document.file_name, size: document.size_bytes }, { onDismiss: () => (row.node.remove(), this.tray.drop(document.id), this.onChange()) });
    row.show("failed", { words: failureText(document) });
    this.list.append(row.node);
    this.onChange();
  }

  #startNext() {
    while (this.#running < MAX_RUNNING && this.#queue.length) {
      this.#running += 1;
      this.#send(this.#queue.shift()).finally(() => {
        this.#running -= 1;
        this.#startNext();
        this.onChange();
      });
    }
  }

  async #send(upload) {
    const { file, destination, row, stop } = upload;
    let documentId = null;
    const onStep = ({ state, share, document }) => {
      if (document) this.#uploading.add((documentId = document.id));
      row.show(state, { share });
      this.tray.set(upload, state, { share });
      if (state === "checking") this.list.prepend(row.node); // what is in work comes first
    };
    try {
      const { document, duplicate } = await sendFile(this.documents.api, file, { destination, onStep, signal: stop.signal });
      this.#uploading.delete(documentId);
      if (duplicate) {
        this.tray.set(upload, "duplicate");
        this.#showDuplicate(upload, row, document, destination);
      } else {
        row.node.remove();
        this.tray.drop(upload);
        this.tray.set(document.id, "waiting", { name: file.name, document });
      }
      this.documents.changed(document);
      this.documents.moved(document.notebook_id);
    } catch (error) {
      this.#uploading.delete(documentId);
      if (error.name !== "AbortError") this.#showFailure(upload, error);
      await this.#deleteStopped(documentId);
    }
  }

  /** A refused file stays listed until it is dismissed; another attempt is offered only where it can help. */
  #showFailure(upload, error) {
    this.tray.set(upload, "failed");
    const isTemporary = !error.status || error.status === 429 || error.status >= 500;
    const retry = () => {
      this.#queue.push(upload);
      upload.row.show("queued");
      this.#startNext();
    };
    const canRetry = isTemporary && error.code !== "unreadable_file";
    const reference = error.requestId ? t("failed.reference", { id: error.requestId }) : "";
    upload.row.show("failed", { words: [errorText(error), reference].filter(Boolean).join(" "), action: canRetry ? { words: t("chat.retry"), click: retry } : null });
  }

  /** Delete the document that a stopped upload had announced. */
  async #deleteStopped(id) {
    if (id) await this.documents.api.delete(`/documents/${id}`).catch(() => {});
  }

  /** The library already has this file; offer to move it if it is stored elsewhere. */
  #showDuplicate(key, row, document, destination) {
    const elsewhere = Object.entries(destination).some(([key, id]) => id && document[key] !== id);
    const move = async () => {
      if (!(await this.documents.move(document, destination))) return;
      row.node.remove();
      this.tray.drop(key);
      this.onChange();
    };
    row.show("duplicate", {
      words: t("upload.duplicate", { name: titleOf(document) }),
      action: elsewhere ? { words: t(destination.note_id ? "upload.attachHere" : "upload.moveHere"), click: move } : null,
    });
  }

  /** The worker found the duplicate after the upload, when it read the bytes. */
  #showLateDuplicate(document, existing) {
    const row = new UploadRow({ name: document.file_name, size: document.size_bytes }, { onDismiss: () => (row.node.remove(), this.tray.drop(row), this.onChange()) });
    this.tray.set(row, "duplicate", { name: document.file_name });
    this.list.append(row.node);
    const { notebook_id, note_id } = document;
    this.#showDuplicate(row, row, existing, { notebook_id, note_id });
    this.onChange();
  }
}
