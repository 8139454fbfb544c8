// One note in the library: its title, first words and actions.

import { el, setAttribute, setText } from "../shared/dom.js";
import { formatAge, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { renderMarkdown } from "../chat/markdown.js";
import { drawBadge, failureText } from "../shared/status.js";
import { titleOf } from "./notes.js";

const SNIPPET = 200;
const BLOCK_MARKS = /(?:^|(?<=\s))(?:#{1,6}|[-*+>])\s+/g;

export class NoteRow {
  /** `actions`: open, ask, trash, restore, remove, each called with the note; `isTarget(id)`; `locationText(note)`. */
  constructor(note, actions) {
    this.actions = actions;
    this.node = el("li", { class: "document note-row", "data-testid": "note-row" });
    this.update(note);
  }

  /** Fill the row. */
  draw() {
    this.title = el("span", { class: "document-title" });
    this.badge = el("span", { class: "badge", "data-testid": "note-badge" });
    this.meta = el("span", { class: "document-meta" });
    this.snippet = el("p", { class: "note-snippet" });
    this.ask = this.#button("ask", "attach", "note-ask");
    this.trash = this.#button("trash", "delete", "note-trash");
    this.restore = this.#button("restore", "restore", "note-restore");
    this.remove = this.#button("remove", "delete", "note-delete");
    const open = el("button", {
      type: "button", class: "document-open", "data-testid": "note-open", on: { click: () => this.actions.open(this.item) },
    }, this.title);
    this.node.append(
      el("span", { class: "kind", "data-type": "note", "aria-hidden": "true" }, icon("note")),
      el("div", { class: "document-main" }, open, this.snippet, el("div", { class: "document-line" }, this.badge, this.meta)),
      el("div", { class: "document-actions" }, this.ask, this.restore, this.trash, this.remove));
    this.#write(this.item);
  }

  /** Leave an empty node. */
  clear() {
    this.node.replaceChildren();
  }

  update(note) {
    this.item = note;
    this.node.dataset.status = note.status;
    this.node.dataset.noteId = note.id;
    this.node.classList.toggle("trashed", note.trashed_at !== null);
    if (this.node.hasChildNodes()) this.#write(note);
  }

  #write(note) {
    const trashed = note.trashed_at !== null;
    const named = { name: titleOf(note) };
    setText(this.title, named.name);
    setText(this.snippet, snippetOf(note));
    drawBadge(this.badge, note);
    setAttribute(this.badge, "title", note.status === "failed" ? failureText(note) : null);
    const attachments = note.attachment_count ? t("note.attachments", { n: note.attachment_count }) : null;
    setText(this.meta, [formatAge(note.updated_at), attachments, this.actions.locationText(note)].filter(Boolean).join(" · "));
    this.ask.hidden = trashed || !note.chunk_count;
    this.trash.hidden = trashed;
    this.restore.hidden = this.remove.hidden = !trashed;
    const isTarget = this.actions.isTarget(note.id);
    setAttribute(this.ask, "aria-pressed", isTarget);
    this.#name(this.ask, t("note.askNamed", named), t(isTarget ? "scope.included" : "note.ask"));
    this.#name(this.trash, t("note.trashNamed", named), t("note.trash"));
    this.#name(this.restore, t("note.restoreNamed", named), t("note.restore"));
    this.#name(this.remove, t("note.deleteNamed", named), t("note.delete"));
  }

  #button(action, name, testid) {
    const click = () => this.actions[action](this.item);
    return el("button", { type: "button", class: "button quiet icon-only small", "data-testid": testid, on: { click } }, icon(name));
  }

  #name(button, label, title) {
    setAttribute(button, "aria-label", label);
    setAttribute(button, "title", title);
  }
}

/** The first words of a note on one line, without its Markdown. */
function snippetOf({ snippet, content }) {
  const line = snippet ?? [...(content ?? "").slice(0, 4 * SNIPPET).replace(/\s+/g, " ").trim()].slice(0, SNIPPET).join("");
  return renderMarkdown(line.replace(BLOCK_MARKS, ""), { written: true }).textContent;
}
