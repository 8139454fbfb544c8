// The library panel: the list of documents, kept live, and the way new files get in.

import { byId } from "./dom.js";
import { confirm } from "./dialogs.js";
import { DocumentRow } from "./document_row.js";
import { openDocumentDialog } from "./document_dialog.js";
import { onLanguage, t } from "./i18n.js";
import { inWords, toast } from "./notices.js";
import { onReached } from "./reached.js";
import { sendFile } from "./upload.js";
import { UploadRow } from "./upload_row.js";
import { StatusWatch } from "./watch.js";

const PAGE = 50;
const UPLOADS_AT_ONCE = 2;
const STALE_AFTER = 30000;

export class Library {
  #rows = new Map();
  #arriving = new Set();
  #queue = [];
  #uploading = 0;
  #cursor = null;
  #loads = 0;
  #loadedAt = 0;
  #filterTimer = null;

  constructor({ api, scope, onChange }) {
    Object.assign(this, { api, scope, onChange });
    this.list = byId("documents");
    this.filter = byId("title-filter");
    this.more = byId("library-more");
    this.watch = new StatusWatch({ api, onChange: (document) => this.put(document), onGone: (id) => this.#drop(id) });
    this.#listen();
  }

  /** How many loaded documents there are, and how many can be asked. */
  get counts() {
    const documents = [...this.#rows.values()].map((row) => row.document);
    return {
      all: documents.length + this.#queue.length + this.#uploading,
      indexed: documents.filter(({ status }) => ["indexed", "reindexing"].includes(status)).length,
      complete: this.#loadedAt > 0,
    };
  }

  /** Load the first page of the list anew, or the next one. */
  async load({ next = false } = {}) {
    const load = ++this.#loads;
    this.more.disabled = true;
    try {
      const cursor = next ? this.#cursor : null;
      const page = await this.api.get("/documents", { title: this.filter.value.trim(), limit: PAGE, cursor });
      if (load !== this.#loads) return;
      if (!next) this.#clear();
      for (const document of page.items) this.#show(document, { last: true });
      this.#cursor = page.next_cursor;
      this.#loadedAt = Date.now();
    } catch (error) {
      if (load === this.#loads) toast(inWords(error), { kind: "bad" });
    }
    this.more.disabled = false;
    this.#settle();
  }

  /** Take in files, a few at a time. */
  add(files) {
    for (const file of files) {
      const stop = new AbortController();
      const row = new UploadRow(file, { onDismiss: () => this.#dismiss(upload) });
      const upload = { file, row, stop };
      this.#queue.push(upload);
      byId("uploads").append(row.node);
    }
    this.#pump();
    this.#settle();
  }

  /** Show the newest state of a document. */
  put(document) {
    if (this.#rows.has(document.id)) this.#rows.get(document.id).update(document);
    else this.#show(document, { last: false });
    this.watch.follow(document);
    this.#settle();
  }

  /** Redraw what depends on the scope or the language. */
  redraw() {
    for (const row of this.#rows.values()) row.update(row.document);
  }

  async remove(document) {
    const name = document.title || document.file_name;
    if (!(await confirm({ title: t("delete.documentTitle", { name }), text: t("delete.documentText"), yes: t("delete.yes") }))) return;
    try {
      const receipt = await this.api.delete(`/documents/${document.id}`);
      this.#drop(document.id);
      toast(t("delete.receipt", { name, pages: receipt?.removed?.pages ?? 0, chunks: receipt?.removed?.chunks ?? 0 }));
    } catch (error) {
      if (error.status === 404) this.#drop(document.id);
      else toast(inWords(error), { kind: "bad" });
    }
  }

  /** `retry` or `reindex` a document. */
  async again(document, action) {
    try {
      this.put(await this.api.post(`/documents/${document.id}/${action}`));
    } catch (error) {
      toast(inWords(error), { kind: "bad" });
    }
  }

  #show(document, { last }) {
    if (this.#arriving.has(document.id) || this.#rows.has(document.id)) return;
    const row = new DocumentRow(document, {
      open: (it) => openDocumentDialog({ api: this.api, document: it, library: this }),
      attach: (it) => this.scope.toggle(it),
      retry: (it) => this.again(it, "retry"),
      remove: (it) => this.remove(it),
      isAttached: (id) => this.scope.has(id),
    });
    this.#rows.set(document.id, row);
    if (last) this.list.append(row.node);
    else this.list.prepend(row.node);
    this.watch.follow(document);
  }

  #drop(id) {
    const row = this.#rows.get(id);
    const neighbour = row?.node.nextElementSibling ?? row?.node.previousElementSibling;
    row?.node.remove();
    this.#rows.delete(id);
    this.watch.forget(id);
    this.scope.remove(id);
    (neighbour?.querySelector(".document-open") ?? byId("upload-button")).focus({ preventScroll: true });
    this.#settle();
  }

  #clear() {
    for (const id of this.#rows.keys()) this.watch.forget(id);
    this.#rows.clear();
    this.list.replaceChildren();
  }

  #settle() {
    const empty = this.#rows.size === 0 && byId("uploads").childElementCount === 0;
    const filtering = this.filter.value.trim() !== "";
    this.more.hidden = !this.#cursor;
    byId("library-empty").hidden = !empty || filtering || !this.#loadedAt;
    byId("library-none").hidden = !(empty && filtering);
    byId("filter-field").hidden = empty && !filtering;
    byId("dropzone").classList.toggle("roomy", empty && !filtering);
    this.onChange(this.counts);
  }

  #dismiss(upload) {
    upload.stop.abort();
    upload.row.node.remove();
    this.#queue = this.#queue.filter((waiting) => waiting !== upload);
    this.#settle();
  }

  #pump() {
    while (this.#uploading < UPLOADS_AT_ONCE && this.#queue.length) {
      this.#uploading += 1;
      this.#send(this.#queue.shift()).finally(() => {
        this.#uploading -= 1;
        this.#pump();
        this.#settle();
      });
    }
  }

  async #send({ file, row, stop }) {
    let arriving = null;
    const onStep = ({ state, share, document }) => {
      if (document) this.#arriving.add((arriving = document.id));
      row.show(state, { share });
    };
    try {
      const { document, duplicate } = await sendFile(this.api, file, { onStep, signal: stop.signal });
      this.#arriving.delete(arriving);
      if (duplicate) row.show("duplicate", { words: t("upload.duplicate", { name: document.title || document.file_name }) });
      else row.node.remove();
      this.put(document);
    } catch (error) {
      this.#arriving.delete(arriving);
      if (error.name === "AbortError") await this.#abandon(arriving);
      else row.show("failed", { words: inWords(error) });
    }
  }

  /** A stopped upload leaves nothing behind. */
  async #abandon(id) {
    if (id) await this.api.delete(`/documents/${id}`).catch(() => {});
  }

  /** Files may come in elsewhere; a list someone is working in, or has paged through, is left alone. */
  #isStale() {
    const inUse = this.#rows.size > PAGE || this.list.contains(document.activeElement);
    return this.#loadedAt > 0 && !inUse && Date.now() - this.#loadedAt > STALE_AFTER;
  }

  #listen() {
    const input = byId("upload-input");
    const choose = () => input.click();
    byId("upload-button").addEventListener("click", choose);
    byId("dropzone").addEventListener("click", choose);
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    this.filter.addEventListener("input", () => {
      clearTimeout(this.#filterTimer);
      this.#filterTimer = setTimeout(() => this.load(), 220);
    });
    this.more.addEventListener("click", () => this.load({ next: true }));
    onReached(this.more, () => this.load({ next: true }));
    onLanguage(() => this.redraw());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.#isStale()) this.load();
    });
  }
}
