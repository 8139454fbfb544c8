// How citations are shown: the mark in the text, the row under the answer, the badge with the result of the quote check.

import { el } from "../shared/dom.js";
import { cleanName, formatPercent, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { quoteLine } from "./extracts.js";

const CHECK_ICONS = { exact: "check", fuzzy: "approximately", unverified: "unverified" };
const RANK = { exact: 2, fuzzy: 1 };

/** The citations, each with the best check among those that quote the same words: they stand in the source or they do not. */
export function withBestChecks(citations) {
  const contains = (other, one) => other.document_id === one.document_id && other.page_start === one.page_start
    && other.start_offset <= one.start_offset && one.end_offset <= other.end_offset;
  return citations.map((one) => {
    const checks = citations.filter((other) => contains(other, one)).map(({ check }) => check);
    return { ...one, check: [one.check, ...checks].sort((a, b) => (RANK[b] ?? 0) - (RANK[a] ?? 0))[0] };
  });
}

/** What a citation cites, as a key: the same words have the same key in every answer. */
export const placeKey = ({ document_id: id, page_start: page, start_offset: start, end_offset: end }) => [id, page, start, end].join(" ");

/** The file's name, or the title of the note. */
export const nameOf = ({ source, file_name: name }) => cleanName(name) || (source === "note" ? t("note.untitled") : "");

/** "page 3", "pages 3–4" or "part 2"; "note" for notes, which have no pages. */
export function locationOf({ source, file_type: type, page_start: from, page_end: to }) {
  if (source === "note") return t("location.note");
  if (!from) return "";
  const kind = type === "pdf" ? "page" : "part";
  return to && to !== from ? t(`location.${kind}s`, { from, to }) : t(`location.${kind}`, { page: from });
}

/** The `[n]` in the text, as a button. */
export function citationMark(citation, onOpen) {
  const mark = el("button", {
    type: "button", class: "citation", "data-testid": "citation", "data-number": citation.number, "data-check": citation.check, "data-support": citation.support, "data-place": placeKey(citation),
    "aria-label": t("citation.mark", { number: citation.number, file: nameOf(citation), place: locationOf(citation) }),
    on: { click: () => onOpen(citation, mark) },
  }, String(citation.number));
  return mark;
}

/** Whether the words stand in the source and, if the passage may not bear them out, that too; older answers do not say. */
export function checkBadge({ check, support }) {
  const kind = check in CHECK_ICONS ? check : "unverified";
  const words = el("span", { class: "check-badge", "data-testid": "check-badge", "data-check": kind, "data-support": support, title: t(`check.${kind}.why`) },
    icon(CHECK_ICONS[kind]), t(`check.${kind}`));
  if (support !== "low") return words;
  return [words, el("span", { class: "support-badge", "data-testid": "support-badge", title: t("support.low.why") }, icon("alert"), t("support.low"))];
}

/** How the source has changed since it was cited; null if it has not. Answers that were just given have no state. */
export function stateBadge(citation) {
  const change = changeOf(citation);
  return change ? el("span", { class: "state-badge", "data-testid": "state-badge", "data-state": change, title: t(`state.${change}.why`) }, icon("alert"), t(`state.${change}`)) : null;
}

function changeOf({ source, state, place }) {
  if (state === "deleted") return source === "note" ? "noteDeleted" : "deleted";
  if (place === "lost") return "lost";
  return state === "superseded" ? "superseded" : null;
}

/** The score as a percentage; null unless it lies between 0 and 1. */
export function scoreText({ score }) {
  return typeof score === "number" && score >= 0 && score <= 1 ? t("score", { percent: formatPercent(score) }) : null;
}

/** The list of sources under an answer. */
export function sourceList(citations, { title, onOpen }) {
  const heading = el("h3", { class: "section-title" }, title);
  return el("section", { class: "sources" }, heading, el("ol", {}, citations.map((citation) => el("li", {}, sourceRow(citation, onOpen)))));
}

function sourceRow(citation, onOpen) {
  const score = scoreText(citation);
  const row = el("button", {
    type: "button", class: "source-row", "data-testid": "source-row", "data-number": citation.number, on: { click: () => onOpen(citation, row) },
  },
    el("span", { class: "source-number", "aria-hidden": "true" }, String(citation.number)),
    el("span", { class: "source-body" },
      el("span", { class: "source-line" },
        el("span", { class: "source-name" }, nameOf(citation)),
        el("span", { class: "source-place" }, locationOf(citation))),
      el("span", { class: "source-snippet" }, quoteLine(citation)),
      el("span", { class: "source-facts" }, checkBadge(citation), stateBadge(citation), score ? el("span", { class: "score", "data-testid": "source-score" }, score) : null)));
  return row;
}
