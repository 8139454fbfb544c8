// The quotations of an answer as people read them: the lines of a printed page joined, the Markdown of a note drawn.

import { el } from "../shared/dom.js";
import { unwrap } from "../language/unwrap.js";
import { renderMarkdown, renderVerbatim } from "./markdown.js";

const NUMBER_MARK = /\[(\s*\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\s*)\]/g;
/** The line below the head of a table: rows of printed tables are quoted in Markdown. */
const TABLE = /^\| ?:?-{3,}/m;
const LETTER = /[\p{L}\p{N}_]/u;
const BLOCK_END = /(?:\||```)\s*$/;
/** A row of a table, whose head may stand elsewhere. */
const ROW = /^\|(.+)\|[^\S\n]*$/gm;
const CELL_END = /(?<!\\)\|/;

/** The words of a citation for reading; its offsets count those of the page. */
export const quoteOf = (citation) => joinCells(readable(citation.quote || citation.snippet_preview || "", citation));

/** Rows without the head of their table as their cells, "06 Aug 2020 · 3.2.3 · 31". */
const joinCells = (text) => (TABLE.test(text) ? text : text.replace(ROW, (_, row) => row.split(CELL_END).map((cell) => cell.trim()).filter(Boolean).join(" · ")));

const readable = (text, { source, file_type: type }) => (source !== "note" && type === "pdf" ? unwrap(text, { isWhole: false }) : text);

const isMarkdown = ({ source, file_type: type }) => source === "note" || type === "md";

/** The sections of an extract as nodes; `citations` maps numbers to citations. */
export function renderExtracts(sections, citations, drawMark) {
  const fragment = document.createDocumentFragment();
  for (const { text, isWritten, emphasis } of describe(sections, citations)) {
    const drawn = (isWritten ? renderMarkdown : renderVerbatim)(text, { known: new Set(citations.keys()), drawMark, written: isWritten });
    if (emphasis) embolden(drawn, emphasis);
    fragment.append(drawn);
  }
  return fragment;
}

/** Draw the words that carry the answer in bold, where they stand whole. */
function embolden(drawn, words) {
  const walker = document.createTreeWalker(drawn, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const at = findWhole(node.data, words);
    if (at < 0) continue;
    const found = node.splitText(at);
    found.splitText(words.length);
    found.replaceWith(el("strong", {}, words));
    return;
  }
}

/** Where `words` begin in `text` outside of a longer word or number; -1 if nowhere. */
function findWhole(text, words) {
  for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) {
    if (!LETTER.test(text[at - 1] ?? "") && !LETTER.test(text[at + words.length] ?? "")) return at;
  }
  return -1;
}

/** The words of a citation as nodes. */
export function drawQuote(citation) {
  return isMarkdown(citation) ? renderMarkdown(quoteOf(citation), { written: true }) : quoteOf(citation);
}

/** The words of a citation on one line. */
export function quoteLine(citation) {
  const drawn = isMarkdown(citation) ? [...drawQuote(citation).childNodes].map(wordsOf).join(" ") : quoteOf(citation);
  return drawn.replace(/\s+/g, " ").trim();
}

/** The text of a node with a space for each line break. */
function wordsOf(node) {
  for (const lineBreak of node.querySelectorAll?.("br") ?? []) lineBreak.replaceWith(" ");
  return node.textContent;
}

/** The sections of an extract as text with citation marks. */
export const writeExtracts = (sections, citations) => describe(sections, citations).map(({ text }) => text).join("\n\n");

function describe(sections, citations) {
  return sections.map(({ text, citations: numbers, emphasis }) => {
    const cited = (numbers ?? []).map((number) => citations.get(number)).filter(Boolean);
    const hasTable = TABLE.test(text);
    const words = (cited.length && !hasTable ? readable(text, cited[0]) : text).replace(NUMBER_MARK, "($1)");
    const marks = cited.map(({ number }) => `[${number}]`).join("");
    return { text: marks ? `${words}${BLOCK_END.test(words) ? "\n\n" : " "}${marks}` : words, isWritten: hasTable || (cited.length > 0 && cited.every(isMarkdown)), emphasis };
  });
}
