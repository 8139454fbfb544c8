// The library panel: the notebooks, and the notes and documents of the open one, kept up to date.

import { NoteDialog } from "../notes/note_dialog.js";
import { NoteRow } from "../notes/note_row.js";
import { Notes, titleOf } from "../notes/notes.js";
import { byId, setText } from "../shared/dom.js";
import { onLanguage, t } from "../language/i18n.js";
import { faultBox, openPart, report } from "../shared/notices.js";
import { Attachments } from "./attachments.js";
import { DocumentList } from "./document_list.js";
import { Documents, isSearchable } from "./documents.js";
import { NotebookList } from "./notebook_list.js";
import { EVERYTHING, Notebooks } from "./notebooks.js";
import { RowList } from "../shared/lists/row_list.js";
import { SearchBar } from "./search/search_bar.js";
import { Uploads } from "./uploads/uploads.js";

const DOCUMENT_DIALOG = new URL("./document_dialog.js", import.meta.url);
const SAVE_NOTE_DIALOG = new URL("../chat/save_note_dialog.js", import.meta.url);
const NOTES_AT_FIRST = 3;
const NOTES_IN_TRASH = 50;
const PAGE = 50;
const STALE_AFTER = 30000;

export class Library {
  #loads = 0;
  #loadedAt = 0;
  #counts = { all: 0, indexed: 0, complete: false };
  #note = null;

  /**
   * `onCounts(counts)` is called when the number of items changes, `onAsk()` when the user wants to ask about a note,
   * `onRead(document)` when the user wants to read a document, `onCite(source, opener)` a passage, `onOpened(dialog)` and `onClosed(dialog)` when a dialog `{kind, id}` is opened or closed.
   */
  constructor({ api, scope, onCounts, onAsk, onRead, onCite, onOpened, onClosed }) {
    Object.assign(this, { api, scope, onCounts, onAsk, onOpened, onClosed });
    this.documents = new Documents({ api, scope });
    this.notes = new Notes({ api, scope });
    this.notebooks = new Notebooks({ api });
    this.uploads = new Uploads({ documents: this.documents, list: byId("uploads"), onChange: () => this.#updateVisibility() });
    this.notebookList = new NotebookList({ notebooks: this.notebooks });
    this.noteList = this.#listNotes();
    this.documentList = new DocumentList({
      documents: this.documents, notebooks: this.notebooks, scope, uploads: this.uploads, locationText: (it) => this.#locationText(it),
      onRead, onDetails: (it) => this.#openDocument(it), onChange: () => this.#updateVisibility(),
    });
    this.search = new SearchBar({
      api, onOpen: onCite, notebook: () => this.notebooks.chosen, onTitle: () => this.load(),
      onFilters: (filters) => (Object.assign(this.documentList, { filters }), this.load()),
    });
    this.#listen();
    this.#drawPlace();
  }

  /** Load the notebooks and the contents of the open one. */
  start() {
    this.notebookList.load().then(() => this.redraw());
    this.load();
  }

  /** Reload both lists. They are shown together so that the layout does not jump. */
  async load() {
    const load = ++this.#loads;
    const { kind, id } = this.notebooks.place;
    const query = { title: this.search.title, notebook_id: id };
    const trash = kind === "trash";
    byId("shelves").setAttribute("aria-busy", "true");
    try {
      const [notes, documents] = await Promise.all([
        this.documentList.isFiltered ? [] : this.noteList.fetch({ ...query, trashed: trash || null }, { limit: trash ? NOTES_IN_TRASH : NOTES_AT_FIRST }),
        this.documentList.fetch({ ...query, trashed: trash || null }),
      ]);
      if (load !== this.#loads) return;
      this.#loadedAt = Date.now();
      byId("library-fault").replaceChildren();
      if (this.documentList.isFiltered) this.noteList.clear();
      else if (notes) this.noteList.show(notes);
      if (documents) this.documentList.rows.show(documents);
      this.#drawPlace();
    } catch (error) {
      if (load === this.#loads) this.#showFault(error);
    }
    if (load === this.#loads) byId("shelves").removeAttribute("aria-busy");
    this.#updateVisibility();
  }

  /** What was loaded before stays below the message. */
  #showFault(error) {
    byId("library-fault").replaceChildren(faultBox(error, { what: t("failed.library"), onRetry: () => this.load(), testid: "library-fault" }));
  }

  /** Upload files: as attachments if a note is open, else into the open notebook. */
  add(files) {
    if (this.#note?.takeFiles(files)) return;
    this.#leaveTrash();
    const notebookId = this.notebooks.chosen;
    this.uploads.add(files, { destination: notebookId ? { notebook_id: notebookId } : {} });
  }

  /** New items cannot be added to the trash, so show everything instead. */
  #leaveTrash() {
    if (this.notebooks.place.kind === "trash") this.notebooks.choose(EVERYTHING);
  }

  #createNote() {
    this.#leaveTrash();
    this.#openNote({ id: null, title: "", content: "", notebook_id: this.notebooks.chosen });
  }

  /** Open a dialog, `{kind, id}`, that was open before. */
  open({ kind, id }) {
    return kind === "note" ? this.openNote(id) : this.openDocument(id);
  }

  async openNote(id) {
    if (this.#note?.id === id) return;
    try {
      this.#openNote(await this.api.get(`/notes/${id}`));
    } catch (error) {
      if (error.status === 404) this.notes.gone({ id });
      report(error, t("failed.open"), () => this.openNote(id));
    }
  }

  async openDocument(id) {
    try {
      this.#openDocument(await this.api.get(`/documents/${id}`));
    } catch (error) {
      report(error, t("failed.open"), () => this.openDocument(id));
    }
  }

  /** Save an answer as a note by POST to `address`; resolves to the note, or to null if cancelled. */
  async saveAnswerAsNote(address) {
    const { api, notebooks } = this;
    const note = await openPart(SAVE_NOTE_DIALOG, (part) => part.openSaveNoteDialog({ api, notebooks, address }));
    if (!note) return null;
    this.notes.changed(note);
    this.notes.moved(note.notebook_id);
    return note;
  }

  /** Resolves to whether the open note was closed; the user may keep one open that cannot be saved. */
  async closeNote() {
    return this.#note ? this.#note.close() : true;
  }

  /** Redraw what depends on the search scope or the language. */
  redraw() {
    this.documentList.rows.redraw();
    this.noteList.redraw();
  }

  #openNote(note) {
    const { api, documents, notes, notebooks, uploads, scope } = this;
    const openDocument = (it) => this.#openDocument(it);
    const dialog = { kind: "note", id: note.id };
    this.onOpened(dialog);
    this.#note = new NoteDialog({
      api, notes, notebooks, note,
      drawAttachments: (options) => new Attachments({ ...options, documents, uploads, scope, openDocument }),
      onAsk: (it) => (this.#ask(it), this.onAsk()), onClose: () => (this.#note = null, this.onClosed(dialog)),
    });
  }

  #openDocument(document) {
    const { api, documents, notebooks } = this;
    const dialog = { kind: "document", id: document.id };
    this.onOpened(dialog);
    openPart(DOCUMENT_DIALOG, (part) => part.openDocumentDialog({
      api, documents, notebooks, document, openNote: (id) => this.openNote(id), openVersion: (it) => this.#openDocument(it), onClose: () => this.onClosed(dialog),
    }));
  }

  #ask(note) {
    this.scope.setTarget({ kind: "note", id: note.id, name: titleOf(note) });
  }

  #locationText({ notebook_id: id, note_id: noteId }) {
    const notebook = id && !this.notebooks.chosen ? this.notebooks.nameOf(id) : "";
    return [notebook, noteId ? t("document.attachedToNote") : ""].filter(Boolean).join(" · ");
  }

  #listNotes() {
    const actions = {
      open: (it) => this.openNote(it.id),
      ask: (it) => (this.scope.isTarget(it.id) ? this.scope.setTarget(null) : this.#ask(it)),
      trash: (it) => this.notes.trash(it),
      restore: (it) => this.notes.restore(it),
      remove: (it) => this.notes.remove(it),
      isTarget: (id) => this.scope.isTarget(id),
      locationText: (it) => this.#locationText(it),
    };
    const belongs = (it) => {
      const { kind, id } = this.notebooks.place;
      return (it.trashed_at !== null) === (kind === "trash") && (!id || it.notebook_id === id);
    };
    return new RowList({
      feed: this.notes, path: "/notes", list: byId("notes"), more: byId("notes-more"), order: "updated_at", reorders: true, focusFallback: byId("note-new"),
      scroller: byId("shelves"), makeRow: (it) => new NoteRow(it, actions), belongs,
      onChange: () => this.#updateVisibility(), onError: (error) => report(error, t("failed.library")),
    });
  }

  /** Update the texts that depend on the open place: everything, a notebook, or the trash. */
  #drawPlace() {
    const { kind, name } = this.notebooks.place;
    byId("dropzone").hidden = kind === "trash";
    setText(byId("library-empty"), t(`library.empty.${kind}`));
    setText(byId("drop-words"), kind === "notebook" ? t("library.dropInto", { name }) : t("library.dropHere"));
  }

  #updateVisibility() {
    const { kind } = this.notebooks.place;
    const [notes, documents] = [this.noteList?.items ?? [], this.documentList?.items ?? []];
    const filtering = Boolean(this.search?.title) || this.documentList?.isFiltered;
    const arriving = kind === "trash" ? 0 : byId("uploads").childElementCount;
    const empty = !notes.length && !documents.length && !arriving;
    byId("library-empty").hidden = !empty || filtering || !this.#loadedAt;
    byId("library-none").hidden = !(empty && filtering);
    byId("search-line").hidden = empty && !filtering;
    byId("notes-title").hidden = !notes.length;
    byId("documents-head").hidden = !documents.length;
    byId("dropzone").classList.toggle("roomy", empty && !filtering);
    this.#updateCounts(notes, documents, filtering);
  }

  /** A notebook or a filter shows only part of the library, so the counts never fall below those of the whole. */
  #updateCounts(notes, documents, filtering) {
    const now = {
      all: notes.length + documents.length + this.uploads.unfinished,
      indexed: documents.filter(isSearchable).length + notes.filter(({ chunk_count: chunks }) => chunks > 0).length,
    };
    const whole = this.notebooks.place.kind === "all" && !filtering;
    const least = whole ? { all: 0, indexed: 0 } : this.#counts;
    this.#counts = { all: Math.max(now.all, least.all), indexed: Math.max(now.indexed, least.indexed), complete: this.#loadedAt > 0 };
    this.onCounts(this.#counts);
  }

  /** Whether to reload, as files may have been added elsewhere. A list that has the focus or was paged through is left alone. */
  #isStale() {
    const inUse = this.documentList.items.length > PAGE || byId("shelves").contains(document.activeElement);
    return this.#loadedAt > 0 && !inUse && Date.now() - this.#loadedAt > STALE_AFTER;
  }

  #showPlace() {
    const { place } = this.notebooks;
    this.scope.setDefaultTarget(place.kind === "notebook" ? { ...place } : null);
    this.search.clear();
    this.#drawPlace();
    this.load();
  }

  #listen() {
    const input = byId("upload-input");
    for (const button of [byId("upload-button"), byId("dropzone")]) button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add([...input.files]);
      input.value = "";
    });
    byId("note-new").addEventListener("click", () => this.#createNote());
    addEventListener("beforeunload", (event) => this.uploads.unfinished && event.preventDefault());
    onLanguage(() => (this.#drawPlace(), this.redraw()));
    document.addEventListener("visibilitychange", () => !document.hidden && this.#isStale() && this.load());
    this.#listenToFeeds();
  }

  #listenToFeeds() {
    const { documents, notes, notebooks, scope } = this;
    for (const feed of [documents, notes]) feed.addEventListener("moved", ({ detail }) => notebooks.refresh(detail));
    notebooks.addEventListener("choose", () => this.#showPlace());
    notebooks.addEventListener("emptied", () => this.load());
    notebooks.addEventListener("gone", ({ detail }) => scope.forgetTarget(detail.id));
    notebooks.addEventListener("change", ({ detail: { id, title } }) => (scope.renameTarget(id, title), this.#renamed(id, title)));
    notes.addEventListener("change", ({ detail }) => scope.renameTarget(detail.id, titleOf(detail)));
    notes.addEventListener("attachments", () => this.load());
    scope.addEventListener("change", () => this.redraw());
  }

  #renamed(id, name) {
    if (this.notebooks.chosen === id) Object.assign(this.notebooks.place, { name });
    this.#drawPlace();
    this.redraw();
  }
}
