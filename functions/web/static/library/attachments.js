// The attachments of a note: listed, uploaded, chosen from the library, and detached.

import { el } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { openPart, report } from "../shared/notices.js";
import { DocumentRow } from "./document_row.js";
import { RowList } from "../shared/lists/row_list.js";
import { ACCEPTED } from "./uploads/upload.js";

const ATTACH_DIALOG = new URL("./attach_dialog.js", import.meta.url);

export class Attachments {
  #noteId;
  hasChanged = false;

  /** `ensureDestination()` saves the note if it is new; it resolves to `{note_id, notebook_id?}`, or to null if saving failed. */
  constructor({ noteId, documents, uploads, scope, ensureDestination, openDocument, readOnly }) {
    Object.assign(this, { documents, uploads, ensureDestination });
    this.#noteId = noteId;
    this.uploadList = el("ul", { class: "uploads" });
    this.list = el("ul", { class: "documents", "aria-label": t("note.attachmentsTitle") });
    this.more = el("button", { type: "button", class: "button quiet wide", hidden: true }, t("more"));
    this.input = el("input", {
      type: "file", class: "visually-hidden", multiple: true, tabIndex: -1, "aria-hidden": "true", accept: ACCEPTED, "data-testid": "attachment-input",
    });
    this.input.addEventListener("change", () => {
      this.add([...this.input.files]);
      this.input.value = "";
    });
    const button = (name, testid, words, click) => el("button", { type: "button", class: "button small", "data-testid": testid, on: { click } }, icon(name), words);
    this.upload = button("upload", "attachment-upload", t("note.attachFiles"), () => this.input.click());
    const fromLibrary = button("document", "attachment-choose", t("note.attachFromLibrary"), () => this.#choose());
    this.node = el("section", { class: "attachments", "data-testid": "attachments" },
      el("div", { class: "attachments-head" },
        el("h3", { class: "section-title" }, t("note.attachmentsTitle")),
        readOnly ? null : [this.upload, fromLibrary, this.input]),
      this.uploadList, this.list, this.more);
    this.rows = this.#listRows({ scope, openDocument });
  }

  /** Upload files as attachments. */
  async add(files) {
    const destination = await this.#saveNoteFirst();
    if (destination) this.uploads.add(files, { destination, list: this.uploadList });
  }

  async load() {
    if (!this.#noteId) return;
    try {
      const items = await this.rows.fetch({ note_id: this.#noteId });
      if (items) this.rows.show(items);
    } catch (error) {
      report(error, t("failed.attachments"), () => this.load());
    }
  }

  /** Running uploads continue in the library's list. */
  close() {
    this.uploads.takeOver(this.uploadList);
    this.rows.close();
  }

  get count() {
    return this.rows.items.length;
  }

  async #saveNoteFirst() {
    const destination = await this.ensureDestination();
    if (!destination) return null;
    this.#noteId = destination.note_id;
    this.hasChanged = true;
    return destination;
  }

  #holds(document) {
    return document.note_id === this.#noteId && !document.superseded_by && !this.uploads.isUploading(document.id);
  }

  #listRows({ scope, openDocument }) {
    const actions = {
      open: openDocument,
      info: openDocument,
      attach: (it) => scope.toggle(it),
      retry: (it) => this.documents.reprocess(it, "retry"),
      uploadAgain: (it) => this.uploads.chooseAgain(it),
      detach: (it) => {
        this.hasChanged = true;
        this.documents.move(it, { note_id: null });
      },
      isAttached: (id) => scope.has(id),
      locationText: () => "",
    };
    const rows = new RowList({
      feed: this.documents, path: "/documents", list: this.list, more: this.more, order: "created_at", focusFallback: this.upload,
      makeRow: (it) => new DocumentRow(it, actions, { removal: "detach" }), belongs: (it) => this.#noteId !== null && this.#holds(it),
      onChange: () => {}, onError: (error) => report(error, t("failed.attachments")),
    });
    scope.addEventListener("change", () => rows.redraw(), { signal: rows.stop.signal });
    return rows;
  }

  async #choose() {
    const destination = await this.#saveNoteFirst();
    if (!destination) return;
    openPart(ATTACH_DIALOG, (part) => part.openDocumentPicker({
      api: this.documents.api, title: t("note.attachFromLibrary"), explain: t("note.attachExplain"), onlySearchable: false,
      isChosen: (it) => it.note_id === destination.note_id,
      choose: (it) => this.documents.move(it, it.notebook_id ? { note_id: destination.note_id } : destination),
      release: (it) => this.documents.move(it, { note_id: null }),
    }));
  }
}
