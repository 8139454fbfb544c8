// The details of one document: facts, health report, older versions, notebook or note, and the less frequent actions.

import { titleOf as titleOfNote } from "../notes/notes.js";
import { openDialog } from "../shared/dialogs.js";
import { el } from "../shared/dom.js";
import { formatDate, formatNumber, formatSize, textOrNull, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { notebookSelect } from "../shared/notebook_select.js";
import { report } from "../shared/notices.js";
import { Pager } from "../shared/pager.js";
import { drawBadge, failureText } from "../shared/status.js";
import { metaOf } from "./document_row.js";
import { titleOf } from "./documents.js";
import { describeHealth, describeMetadata } from "./health.js";
import { Translation } from "./translation.js";

const TONES = { good: "check", warn: "alert", bad: "alert", plain: "document" };

export function openDocumentDialog(options) {
  new DocumentDialog(options);
}

class DocumentDialog {
  /** `openNote(id)` opens the note that the document is attached to. */
  constructor({ api, documents, notebooks, document, openNote, openVersion, onClose }) {
    Object.assign(this, { api, documents, notebooks, document, openNote, openVersion });
    this.body = el("div", { class: "document-details" });
    this.translation = new Translation({ api, documents });
    this.location = el("div", { class: "document-place" }, document.superseded_by || document.trashed_at ? null : this.#chooseNotebook(), this.#noteLine(document));
    this.versions = el("div", {});
    this.draw(document);
    this.dialog = openDialog({
      testid: "document-dialog", title: titleOf(document), body: [this.body, this.translation.node, this.location, this.versions], actions: this.#actions(document), onClose,
    });
    const stop = new AbortController();
    documents.addEventListener("change", ({ detail }) => detail.id === document.id && this.draw(detail), { signal: stop.signal });
    this.dialog.addEventListener("close", () => (stop.abort(), this.translation.close()));
    this.#refresh();
  }

  draw(document) {
    this.document = document;
    const badge = el("span", { class: "badge" });
    drawBadge(badge, document);
    this.body.replaceChildren(...[
      el("p", {}, badge),
      document.status === "failed" ? el("p", { class: "fault" }, failureText(document)) : null,
      facts(document), metadata(document), health(document),
    ].filter(Boolean));
    this.translation.update(document);
  }

  /** Reload, as the list may be out of date: self-retrieval is measured after everything else. */
  async #refresh() {
    try {
      const now = await this.api.get(`/documents/${this.document.id}`);
      if (now.id === this.document.id && this.dialog.open) this.documents.changed(now);
      if (now.version > 1 && !now.superseded_by) await this.#listVersions(now);
    } catch (error) {
      if (error.status !== 404) return;
      this.dialog.close();
      this.documents.gone(this.document);
    }
  }

  #actions(document) {
    const then = (act) => () => {
      this.dialog.close();
      act(this.document);
    };
    const action = (name, testid, words, click, look = "button") =>
      el("button", { type: "button", class: look, "data-testid": testid, on: { click } }, icon(name), words);
    const again = document.trashed_at ? null : { indexed: "reindex", failed: "retry" }[document.status];
    const testid = { reindex: "document-reindex", retry: "document-dialog-retry" }[again];
    return [
      ...(document.trashed_at
        ? [action("delete", "document-dialog-delete", t("document.deleteForGood"), then((it) => this.documents.removeAll([it])), "button quiet danger-text"),
          action("restore", "document-dialog-restore", t("document.restore"), then((it) => this.documents.restore([it])))]
        : [action("delete", "document-dialog-trash", t("document.trash"), then((it) => this.documents.trash([it])), "button quiet danger-text")]),
      el("span", { class: "spacer" }),
      again ? action("retry", testid, t(`document.${again}`), then((it) => this.documents.reprocess(it, again))) : null,
      document.status === "awaiting_upload" ? null : action("download", "document-download", t("document.download"), () => download(this.api, this.document)),
    ];
  }

  #chooseNotebook() {
    return notebookSelect({
      notebooks: this.notebooks, chosen: this.document.notebook_id, testid: "document-notebook",
      onChoose: (id) => this.documents.move(this.document, { notebook_id: id }),
    });
  }

  /** "Attached to …", with a link to the note and a button to detach. */
  #noteLine({ note_id: id }) {
    if (!id) return null;
    const show = () => {
      this.dialog.close();
      this.openNote(id);
    };
    const open = el("button", { type: "button", class: "link", "data-testid": "document-note", on: { click: show } }, t("document.someNote"));
    const detach = async () => {
      if (await this.documents.move(this.document, { note_id: null })) line.remove();
    };
    const line = el("p", { class: "note-line" }, icon("note"), el("span", {}, t("document.attachedTo"), " ", open),
      el("button", { type: "button", class: "button quiet small", "data-testid": "document-detach-this", on: { click: detach } }, t("document.detach")));
    this.api.get(`/notes/${id}`).then((note) => open.replaceChildren(titleOfNote(note)), () => {});
    return line;
  }

  async #listVersions(current) {
    const pager = new Pager({ api: this.api, path: "/documents" });
    const query = { versions: "all", title: current.file_name, limit: 100 };
    const found = (await pager.load(query)) ?? [];
    while (pager.hasMore) found.push(...((await pager.load(query, { next: true })) ?? []));
    const older = found.filter(({ superseded_by: by }) => by === current.id).sort((one, other) => other.version - one.version);
    if (!older.length) return;
    this.versions.replaceChildren(el("section", { "data-testid": "document-versions" },
      el("h3", { class: "section-title" }, t("versions.title")),
      el("p", { class: "hint" }, t("versions.explain")),
      el("ul", { class: "versions" }, older.map((version) => this.#versionLine(version)))));
  }

  #versionLine(version) {
    const open = () => {
      this.dialog.close();
      this.openVersion(version);
    };
    const words = [t("versions.named", { n: version.version }), formatDate(version.created_at), metaOf(version)].filter(Boolean).join(" · ");
    return el("li", {}, el("button", { type: "button", class: "link", "data-testid": "document-version-open", on: { click: open } }, words));
  }
}

function facts(document) {
  const rows = [
    ["file", document.file_name],
    ["size", document.size_bytes ? formatSize(document.size_bytes) : null],
    [document.file_type === "pdf" ? "pages" : "parts", number(document.page_count)],
    ["language", document.lang ? textOrNull(`lang.${document.lang}`) ?? document.lang : null],
    ["version", document.superseded_by ? t("versions.older", { n: document.version }) : document.version > 1 ? number(document.version) : null],
    ["added", formatDate(document.created_at)],
    ["indexed", formatDate(document.indexed_at)],
  ];
  return list(rows.map(([key, value]) => [t(`fact.${key}`), value]));
}

function metadata(document) {
  const said = describeMetadata(document.ingestion_log);
  if (!said.length) return null;
  return el("section", { "data-testid": "document-metadata" },
    el("h3", { class: "section-title" }, t("metadata.heading")),
    list(said.map(({ key, value }) => [t(`metadata.${key}`), value])));
}

function health(document) {
  const rows = document.health ? describeHealth(document.health, document) : [];
  if (!rows.length) return null;
  return el("section", { "data-testid": "document-health" },
    el("h3", { class: "section-title" }, t("health.title")),
    el("ul", { class: "health" }, rows.map(({ key, text, tone }) => el("li", { "data-health": key, "data-tone": tone }, icon(TONES[tone]), el("span", {}, text)))));
}

function list(rows) {
  const given = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, given.flatMap(([label, value]) => [el("dt", {}, label), el("dd", {}, value)]));
}

const number = (value) => (value ? formatNumber(value) : null);

async function download(api, document) {
  try {
    const { url } = await api.get(`/documents/${document.id}/download`);
    const target = new URL(url, location.origin);
    if (!["http:", "https:"].includes(target.protocol)) throw new Error(t("error.unknown"));
    el("a", { href: target.href, download: document.file_name, rel: "noopener", target: "_blank" }).click();
  } catch (error) {
    report(error, t("failed.download", { name: document.file_name }), () => download(api, document));
  }
}
