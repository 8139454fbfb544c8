// The documents of the open place, with what can be done to one or to several of them.

import { byId } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { RowList } from "../shared/lists/row_list.js";
import { report } from "../shared/notices.js";
import { DocumentRow } from "./document_row.js";
import { isSearchable, passes } from "./documents.js";
import { Selection } from "./selection.js";

const VERSION_KEYS = ["file_name", "notebook_id", "note_id"];

export class DocumentList {
  /** The parameters of the list that the user has chosen in the form of filters. */
  filters = {};

  /** `onRead(document)` and `onDetails(document)` open a document, `locationText(document)` says where it is, `onChange()` follows the number of rows. */
  constructor({ documents, notebooks, scope, uploads, locationText, onRead, onDetails, onChange }) {
    Object.assign(this, { documents, notebooks, uploads });
    const actions = {
      open: (it) => (isSearchable(it) && !it.trashed_at ? onRead(it) : onDetails(it)),
      info: onDetails,
      attach: (it) => scope.toggle(it),
      retry: (it) => documents.reprocess(it, "retry"),
      uploadAgain: (it) => uploads.chooseAgain(it),
      trash: (it) => documents.trash([it]),
      restore: (it) => documents.restore([it]),
      remove: (it) => documents.removeAll([it]),
      isAttached: (id) => scope.has(id),
      isSelected: (id) => this.selection?.has(id) ?? false,
      select: (it, event) => this.selection.pick(it, event),
      step: (it, event) => this.selection.step(it, event),
      locationText,
    };
    this.rows = new RowList({
      feed: documents, path: "/documents", list: byId("documents"), more: byId("library-more"), order: "created_at", loadsOnScroll: true, scroller: byId("shelves"),
      focusFallback: byId("upload-button"), makeRow: (it) => new DocumentRow(it, actions), belongs: (it) => this.#belongs(it),
      onChange, onError: (error) => report(error, t("failed.library")),
    });
    this.selection = new Selection({ rows: this.rows, documents, notebooks, scope });
    documents.addEventListener("change", ({ detail }) => this.#supersede(detail));
  }

  get items() {
    return this.rows.items;
  }

  /** Whether the filters leave something out. */
  get isFiltered() {
    return Object.values(this.filters).some((value) => (Array.isArray(value) ? value.length : value));
  }

  fetch({ title, notebook_id: id, trashed }) {
    return this.rows.fetch({ title, notebook_id: id, trashed, ...this.filters });
  }

  #belongs(document) {
    if (this.uploads.isUploading(document.id) || document.superseded_by || !passes(document, this.filters)) return false;
    const { kind, id } = this.notebooks.place;
    if (Boolean(document.trashed_at) !== (kind === "trash")) return false;
    return kind !== "notebook" || document.notebook_id === id;
  }

  /** A new version replaces the older ones once it is indexed. */
  #supersede(document) {
    if (!isSearchable(document) || document.version < 2) return;
    const isOlder = (it) => it.version < document.version && VERSION_KEYS.every((key) => it[key] === document[key]);
    for (const older of this.items.filter(isOlder)) this.documents.changed({ ...older, superseded_by: document.id });
  }
}
