// The passages of the library that a plain search finds, without an answer.

import { el } from "../../shared/dom.js";
import { cleanName, t } from "../../language/i18n.js";
import { locationOf } from "../../chat/citations.js";
import { icon } from "../../shared/icons.js";
import { faultBox } from "../../shared/notices.js";
import { unwrap } from "../../language/unwrap.js";

const LIMIT = 20;
const SNIPPET = 260;

/** Fills `node` with what the search finds; `onOpen(source, opener)` opens a passage, `onClose()` ends the search. */
export async function showPassages(node, { api, query, notebookId, onOpen, onClose }) {
  const head = (words) => el("div", { class: "passages-head" },
    el("h3", { class: "section-title", role: "status", "data-testid": "passages-title" }, words),
    el("button", { type: "button", class: "button quiet icon-only small", "data-testid": "passages-close", "aria-label": t("passages.close"), title: t("passages.close"), on: { click: onClose } }, icon("close")));
  node.replaceChildren(head(t("passages.searching")));
  try {
    const { hits } = await api.get("/search", { q: query, notebook_id: notebookId, limit: LIMIT });
    if (!node.isConnected || node.hidden) return;
    const list = el("ol", { class: "passages" }, hits.map((hit) => passage(hit, query, onOpen)));
    node.replaceChildren(head(t(hits.length ? "passages.found" : "passages.none", { query })), list);
  } catch (error) {
    const again = () => showPassages(node, { api, query, notebookId, onOpen, onClose });
    node.replaceChildren(head(""), faultBox(error, { what: t("failed.passages"), onRetry: again }));
  }
}

function passage(hit, query, onOpen) {
  const { source: kind, document_id, file_name, file_type, page_start, page_end, start_offset, end_offset, section_title } = hit;
  const source = { source: kind, document_id, file_name, file_type, page_start, page_end, start_offset, end_offset, section_title, state: "current", isReading: kind === "document" };
  const open = (event) => onOpen(source, event.currentTarget);
  return el("li", {}, el("button", { type: "button", class: "passage", "data-testid": "passage", on: { click: open } },
    el("span", { class: "source-line" }, el("span", { class: "source-name" }, cleanName(hit.file_name)), el("span", { class: "source-place" }, locationOf(source))),
    el("span", { class: "passage-text" }, mark(snippet(unwrap(hit.text, { isWhole: false }), query), query))));
}

const wordsOf = (query) => query.match(/[\p{L}\p{N}]{2,}/gu) ?? [];
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** The part of a passage around the first word of the query. */
function snippet(text, query) {
  const [first] = wordsOf(query).map((word) => plain(text).indexOf(plain(word))).filter((at) => at >= 0).sort((one, other) => one - other);
  const from = Math.max(0, (first ?? 0) - 60);
  return `${from ? "…" : ""}${text.slice(from, from + SNIPPET)}${from + SNIPPET < text.length ? "…" : ""}`;
}

/** The text with the words of the query marked, as nodes. */
function mark(text, query) {
  const wanted = new Set(wordsOf(query).map(plain));
  return text.split(/([\p{L}\p{N}]+)/u).map((piece) => (wanted.has(plain(piece)) ? el("mark", {}, piece) : piece));
}
