// What is known of one document: facts, health report, and the rarer actions.

import { el } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { drawBadge, failure } from "./document_row.js";
import { icon } from "./icons.js";
import { formatDate, formatNumber, formatPercent, formatSize, known, t } from "./i18n.js";
import { inWords, toast } from "./notices.js";

export function openDocumentDialog({ api, document, library }) {
  const badge = el("span", { class: "badge" });
  drawBadge(badge, document);
  const then = (act) => () => {
    dialog.close();
    act();
  };
  const action = (name, testid, words, click, look = "button") =>
    el("button", { type: "button", class: look, "data-testid": testid, on: { click } }, icon(name), words);
  const stored = document.status !== "awaiting_upload";
  const dialog = openDialog({
    testid: "document-dialog",
    title: document.title || document.file_name,
    body: [el("p", {}, badge), document.status === "failed" ? el("p", { class: "fault" }, failure(document)) : null, facts(document), health(document.health)],
    actions: [
      action("delete", "document-dialog-delete", t("document.delete"), then(() => library.remove(document)), "button quiet danger-text"),
      el("span", { class: "spacer" }),
      document.status === "indexed" ? action("retry", "document-reindex", t("document.reindex"), then(() => library.again(document, "reindex"))) : null,
      stored ? action("download", "document-download", t("document.download"), () => download(api, document)) : null,
    ],
  });
}

function facts(document) {
  return list([
    ["fact.file", document.file_name],
    ["fact.size", document.size_bytes ? formatSize(document.size_bytes) : null],
    [document.file_type === "pdf" ? "fact.pages" : "fact.parts", number(document.page_count)],
    ["fact.chunks", number(document.chunk_count)],
    ["fact.language", document.lang ? known(`lang.${document.lang}`) ?? document.lang : null],
    ["fact.version", document.version > 1 ? number(document.version) : null],
    ["fact.added", formatDate(document.created_at)],
    ["fact.indexed", formatDate(document.indexed_at)],
  ].map(([key, value]) => [t(key), value]));
}

function health(report) {
  const entries = Object.entries(report ?? {}).filter(([, value]) => value !== null && value !== "");
  if (!entries.length) return null;
  const rows = entries.map(([key, value]) => [known(`health.${key}`) ?? spaced(key), shown(key, value)]);
  return el("section", { "data-testid": "document-health" }, el("h3", { class: "section-title" }, t("health.title")), list(rows));
}

function list(rows) {
  const given = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, given.flatMap(([label, value]) => [el("dt", {}, label), el("dd", {}, value)]));
}

function shown(key, value) {
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  if (typeof value === "number") return isShare(key, value) ? formatPercent(value) : formatNumber(value);
  if (Array.isArray(value)) return value.length ? value.map((item) => shown("", item)).join(", ") : "–";
  if (value && typeof value === "object") return Object.entries(value).map(([name, part]) => `${spaced(name)}: ${shown(name, part)}`).join(", ");
  return known(`lang.${value}`) ?? String(value);
}

const isShare = (key, value) => /score|retrieval|confidence|share/.test(key) && value >= 0 && value <= 1;
const number = (value) => (value ? formatNumber(value) : null);
const spaced = (key) => key.replaceAll("_", " ");

async function download(api, document) {
  try {
    const { url } = await api.get(`/documents/${document.id}/download`);
    const target = new URL(url, location.origin);
    if (!["http:", "https:"].includes(target.protocol)) throw new Error(t("error.unknown"));
    el("a", { href: target.href, download: document.file_name, rel: "noopener", target: "_blank" }).click();
  } catch (error) {
    toast(inWords(error), { kind: "bad" });
  }
}
