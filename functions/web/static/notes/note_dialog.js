// The note editor: Markdown text that is saved automatically, attachments, notebook and actions.

import { renderMarkdown } from "../chat/markdown.js";
import { confirm, forceClose, openDialog } from "../shared/dialogs.js";
import { el, setAttribute, setText } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { LONGEST_TITLE } from "../shared/inline_title.js";
import { notebookSelect } from "../shared/notebook_select.js";
import { errorText } from "../shared/notices.js";
import { failureText } from "../shared/status.js";
import { Autosave } from "./autosave.js";
import { titleOf } from "./notes.js";

/** A link to a cited passage, as in a saved answer, which is for reading first. */
const CITES = /\]\(\/?#[dn]=[\w-]+&page=/;
const DANGER_BUTTON = "button quiet danger-text";

export class NoteDialog {
  #notebook;
  #closing = new AbortController();

  /**
   * `note` comes from the server, or is a new one whose `id` is null. `drawAttachments({noteId, readOnly, ensureDestination})`
   * returns its `Attachments`, which belong to the library: notes/ must not import library/.
   */
  constructor({ api, notes, notebooks, note, drawAttachments, onAsk, onClose }) {
    Object.assign(this, { notes, onAsk, onClose, listed: note.id ? note : null, readOnly: Boolean(note.trashed_at) });
    this.#notebook = note.notebook_id;
    this.#drawFields(note);
    const read = () => ({ title: this.title.value, content: this.content.value, notebook_id: this.#notebook });
    this.autosave = new Autosave({ api, note, read, onState: (state, details) => this.#show(state, details) });
    this.attachments = drawAttachments({ noteId: note.id, readOnly: this.readOnly, ensureDestination: () => this.#ensureDestination() });
    this.select = notebookSelect({
      notebooks, chosen: note.notebook_id, testid: "note-notebook",
      onChoose: (id) => {
        this.#notebook = id;
        return this.autosave.flush();
      },
    });
    this.dialog = openDialog({
      testid: "note-dialog", kind: "note-editor", title: t("note.heading"),
      body: [this.bar, this.title, this.modes, this.content, this.reading, this.status, this.attachments.node],
      actions: this.readOnly ? this.#trashActions() : this.#actions(),
      mayClose: () => this.#mayClose(), onClose: () => this.#closed(),
    });
    this.#listen();
    this.attachments.load();
    if (note.id) this.#show("saved", { note });
    this.content.setSelectionRange(0, 0);
    const isForReading = CITES.test(note.content ?? "");
    if (isForReading) this.#setPreview(true);
    if (!note.id) this.title.focus();
    else if (matchMedia("(hover: hover)").matches) (isForReading ? this.reading : this.content).focus(); // on touch screens this would open the keyboard
  }

  get id() {
    return this.autosave.note.id;
  }

  /** Resolves to whether the dialog was closed; the user may keep it open when saving fails. */
  async close() {
    if (!(await this.#mayClose())) return false;
    forceClose(this.dialog);
    return true;
  }

  /** Attach files dropped while the note is open; returns whether they were taken. */
  takeFiles(files) {
    if (!this.readOnly) this.attachments.add(files);
    return !this.readOnly;
  }

  #drawFields(note) {
    const { readOnly } = this;
    this.title = el("input", {
      type: "text", class: "note-title", value: note.title, maxlength: LONGEST_TITLE, readonly: readOnly, "data-testid": "note-title",
      placeholder: t("note.title"), "aria-label": t("note.title"),
    });
    this.content = el("textarea", {
      class: "note-content", value: note.content, readonly: readOnly, "data-testid": "note-content", spellcheck: "true",
      placeholder: t("note.placeholder"), "aria-label": t("note.text"), "aria-describedby": "note-status",
    });
    this.reading = el("div", { class: "answer-text note-reading", "data-testid": "note-reading", tabIndex: 0, hidden: true });
    this.status = el("p", { class: "note-status", id: "note-status", role: "status", "data-testid": "note-status" });
    this.bar = el("div", { class: "fault-box", role: "alert", "data-testid": "note-conflict", hidden: true });
    const mode = (words, testid, reading) => el("button", {
      type: "button", class: "segment", "data-testid": testid, "aria-pressed": String(!reading), on: { click: () => this.#setPreview(reading) },
    }, words);
    this.modes = el("div", { class: "segments note-modes", role: "group", "aria-label": t("note.modes") },
      mode(t("note.write"), "note-write", false), mode(t("note.preview"), "note-read", true));
  }

  #actions() {
    const ask = this.#button("search", "note-ask-this", t("note.askThis"), () => this.#ask(), "button primary");
    const trash = this.#button("delete", "note-to-trash", t("note.trash"), () => this.#closeThen((it) => this.notes.trash(it)), DANGER_BUTTON);
    return [this.select, el("span", { class: "spacer" }), trash, ask];
  }

  #trashActions() {
    const restore = this.#button("restore", "note-restore-this", t("note.restore"), () => this.#closeThen((it) => this.notes.restore(it)));
    const remove = this.#button("delete", "note-delete-this", t("note.delete"), () => this.#closeThen((it) => this.notes.remove(it)), DANGER_BUTTON);
    return [remove, el("span", { class: "spacer" }), restore];
  }

  #button(name, testid, words, click, look = "button") {
    return el("button", { type: "button", class: look, "data-testid": testid, on: { click } }, icon(name), words);
  }

  #listen() {
    const { signal } = this.#closing;
    for (const field of [this.title, this.content]) {
      field.addEventListener("input", () => this.autosave.scheduleSave());
      field.addEventListener("blur", () => this.autosave.flush());
    }
    this.title.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && (event.preventDefault(), this.content.focus()));
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.autosave.flush();
    });
    this.notes.addEventListener("change", ({ detail }) => this.autosave.acceptIndexing(detail), { signal });
    addEventListener("beforeunload", (event) => this.autosave.isDirty && event.preventDefault(), { signal });
    document.addEventListener("visibilitychange", () => document.hidden && this.autosave.flush(), { signal });
  }

  #setPreview(reading) {
    if (reading) this.reading.replaceChildren(renderMarkdown(this.content.value, { written: true, links: true, web: true }));
    this.reading.hidden = !reading;
    this.content.hidden = reading;
    const [write, read] = this.modes.children;
    setAttribute(write, "aria-pressed", !reading);
    setAttribute(read, "aria-pressed", reading);
  }

  /** Show the save status under the text; a problem that stops saving is shown above it with the actions that resolve it. */
  #show(state, { note, error }) {
    this.status.dataset.state = state;
    setText(this.status, this.readOnly ? t("note.state.trashed") : stateText(state, note, error));
    if (state === "saved" && note.id) this.#updateLists(note);
    if (this.readOnly) return;
    const actions = {
      conflict: [
        ["note-reload", "note.reload", () => this.#showNote(this.autosave.reload())],
        ["note-overwrite", "note.overwrite", () => this.autosave.overwrite()],
      ],
      gone: [["note-anew", "note.saveAsNew", () => this.autosave.saveAsNew()]],
      trashed: [["note-restore-here", "note.restore", () => this.autosave.restore()]],
    }[state];
    this.bar.hidden = !actions;
    if (!actions) return;
    const buttons = actions.map(([testid, key, click]) => el("button", { type: "button", class: "button small", "data-testid": testid, on: { click } }, t(key)));
    this.bar.replaceChildren(icon("alert"), el("p", {}, t(`note.${state}`, { name: titleOf(note) })), ...buttons);
  }

  /** Update the lists, once for each change: their events are also received here. */
  #updateLists(note) {
    if (this.listed?.updated_at === note.updated_at && this.listed.status === note.status) return;
    const before = this.listed;
    this.listed = note;
    this.notes.changed(note);
    if (before?.notebook_id !== note.notebook_id) this.notes.moved(before?.notebook_id, note.notebook_id);
  }

  #showNote(note) {
    this.title.value = note.title;
    this.content.value = note.content;
    this.#setPreview(false);
    this.#notebook = note.notebook_id;
    this.select.querySelector("select").value = note.notebook_id ?? "";
    this.content.focus();
  }

  async #ensureDestination() {
    const id = await this.autosave.ensureSaved();
    return id ? { note_id: id, ...(this.#notebook ? { notebook_id: this.#notebook } : {}) } : null;
  }

  /** Whether the dialog may close: everything is saved, or the user discards the rest. */
  async #mayClose() {
    if (this.readOnly || (await this.autosave.flush())) return true;
    return confirm({ title: t("note.discardTitle"), text: t("note.discardText"), yes: t("note.discard") });
  }

  async #closeThen(act) {
    if (!(await this.#mayClose())) return;
    const { note } = this.autosave;
    forceClose(this.dialog);
    if (note.id) await act({ ...note, attachment_count: this.attachments.count || note.attachment_count });
  }

  async #ask() {
    if ((await this.autosave.flush()) && this.autosave.note.id) this.#closeThen((note) => this.onAsk(note));
  }

  /** Reload the note, as the list shows its number of attachments. */
  async #reloadNote() {
    try {
      this.notes.changed(await this.notes.api.get(`/notes/${this.id}`));
    } catch {
      // The list shows the right number when it is loaded again.
    }
  }

  #closed() {
    this.#closing.abort();
    this.autosave.close();
    this.attachments.close();
    if (this.id && this.attachments.hasChanged) this.#reloadNote();
    this.onClose();
  }
}

/** "Saved · indexed (3 chunks)", "Not saved: …". */
function stateText(state, note, error) {
  if (state === "failed") return t("note.state.failed", { why: errorText(error) });
  if (state !== "saved") return t(`note.state.${state}`);
  if (!note.id) return "";
  return [t("note.state.saved"), indexText(note)].filter(Boolean).join(" · ");
}

function indexText(note) {
  if (note.status === "failed") return t("note.notIndexed", { why: failureText(note) });
  if (note.status === "indexed") return t("status.indexed", { n: note.chunk_count });
  return t(`note.index.${note.status}`);
}
