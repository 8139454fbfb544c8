// The subset of Markdown that answers and notes use, built as DOM nodes. Images and HTML are left out, so that nothing is loaded
// or run because a document says so. A link to another site opens in a tab of its own, and only by http, https or mailto;
// only notes may link to passages and conversations on this page.

import { el } from "../shared/dom.js";
import { splitMarks } from "./marks.js";

const FENCE = /^ {0,3}(```|~~~)/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const ITEM = /^(\s*)(?:([-*+•])|(\d{1,9})[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const TABLE_LINE = /^[\s:|-]+$/;
const MAX_DEPTH = 4;
const MAX_COLUMNS = 60;
const ESCAPED = /^\\([!-/:-@[-`{-~]|$)/;
const WEB_LINK = /^\[((?:\\.|[^\\[\]]){1,400})\]\(((?:https?:\/\/|mailto:)[^\s()<>"]{1,1000})\)/i;
const ADDRESS = /^(?:https?:\/\/|mailto:)[^\s<>"`|\\^{}]{3,1000}/i;
const ADDRESS_END = /[.,;:!?'’)\]*_]+$/;
const PAGE_LINK = /^\[((?:\\.|[^\\[\]]){1,400})\]\(\/?(#[dnc]=[\w&=-]{1,200})\)/;

/**
 * Answer or note text as a fragment. `drawMark(number)` returns the node for a citation mark whose number is in `known`.
 * With `written` (notes and Markdown files), backslashes escape; with `links`, links within this page work, with `web`, those to
 * other sites.
 */
export function renderMarkdown(text, { known = new Set(), drawMark = null, written = false, links = false, web = false } = {}) {
  const inline = (line) => renderInline(line, { known, drawMark, written, links, web });
  return renderBlocks(text.replace(/\r\n?/g, "\n").split("\n"), inline, 0);
}

/** Text without Markdown: only line breaks and citation marks are interpreted. */
export function renderVerbatim(text, { known = new Set(), drawMark = null } = {}) {
  const fragment = document.createDocumentFragment();
  for (const paragraph of text.replace(/\r\n?/g, "\n").split(/\n{2,}/)) {
    if (paragraph.trim()) fragment.append(el("p", { class: "verbatim" }, insertMarks(paragraph, { known, drawMark })));
  }
  return fragment;
}

function renderBlocks(lines, inline, depth) {
  const fragment = document.createDocumentFragment();
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) at += 1;
    else at = renderBlock(lines, at, inline, depth, fragment);
  }
  return fragment;
}

function renderBlock(lines, at, inline, depth, into) {
  const line = lines[at];
  if (FENCE.test(line)) return renderFence(lines, at, into);
  const heading = HEADING.exec(line);
  if (heading) {
    into.append(el("h3", { class: heading[1].length > 2 ? "minor" : null }, inline(heading[2].trim().replace(/ #+$/, ""))));
    return at + 1;
  }
  if (RULE.test(line)) {
    into.append(el("hr"));
    return at + 1;
  }
  if (isTable(lines, at)) return renderTable(lines, at, inline, into);
  if (depth < MAX_DEPTH && QUOTE.test(line)) return renderQuote(lines, at, inline, depth, into);
  if (depth < MAX_DEPTH && ITEM.test(line)) return renderList(lines, at, inline, depth, into);
  return renderParagraph(lines, at, inline, into);
}

function renderFence(lines, at, into) {
  const closing = FENCE.exec(lines[at])[1];
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(closing)) end += 1;
  into.append(el("pre", {}, el("code", { textContent: lines.slice(at + 1, end).join("\n") })));
  return end + 1;
}

function renderQuote(lines, at, inline, depth, into) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  into.append(el("blockquote", {}, renderBlocks(inner, inline, depth + 1)));
  return end;
}

/** A list of items with the same indent; lines indented deeper belong to the item above them. */
function renderList(lines, at, inline, depth, into) {
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const ordered = first[3] !== undefined;
  const node = el(ordered ? "ol" : "ul", ordered && first[3] !== "1" ? { start: first[3] } : {});
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length !== indent || (item[3] !== undefined) !== ordered) break;
    const inner = [];
    at += 1;
    while (at < lines.length && isIndentedDeeper(lines, at, indent)) inner.push(lines[at++]);
    node.append(el("li", {}, inline(item[4]), inner.length ? renderBlocks(inner, inline, depth + 1) : null));
    while (at + 1 < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1])) at += 1;
  }
  into.append(node);
  return at;
}

function isIndentedDeeper(lines, at, indent) {
  const line = lines[at];
  return Boolean(line.trim()) && line.length - line.trimStart().length > indent;
}

/** Browsers lay out a table in the time of its rows times its columns, so a wider one stays text. */
function isTable(lines, at) {
  const under = lines[at + 1] ?? "";
  const isMarked = lines[at].includes("|") && under.includes("|") && under.includes("-") && TABLE_LINE.test(under);
  return isMarked && splitCells(lines[at]).length <= MAX_COLUMNS;
}

function renderTable(lines, at, inline, into) {
  const head = splitCells(lines[at]);
  const rows = [];
  let end = at + 2;
  while (end < lines.length && lines[end].trim() && lines[end].includes("|")) rows.push(splitCells(lines[end++]));
  const row = (kind) => (values) => el("tr", {}, drawCells(kind, values.slice(0, head.length), head.length, inline));
  // A scrolling region must be reachable by keyboard.
  into.append(
    el("div", { class: "table", tabindex: "0", role: "group" },
      el("table", {}, el("thead", {}, row("th")(head)), el("tbody", {}, rows.map(row("td"))))),
  );
  return end;
}

/** The last cell of a short row takes the columns that are missing, so the cost depends on the text alone. */
function drawCells(kind, values, columns, inline) {
  const missing = columns - values.length;
  return values.map((value, at) => el(kind, { colspan: missing && at === values.length - 1 ? missing + 1 : null }, inline(value)));
}

function splitCells(line) {
  const trimmed = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return trimmed.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function renderParagraph(lines, at, inline, into) {
  const node = el("p");
  let end = at;
  do {
    if (end > at) node.append(el("br"));
    node.append(...inline(lines[end].trim()));
    end += 1;
  } while (end < lines.length && lines[end].trim() && !startsBlock(lines, end));
  into.append(node);
  return end;
}

function startsBlock(lines, at) {
  return [FENCE, HEADING, QUOTE, ITEM, RULE].some((start) => start.test(lines[at])) || isTable(lines, at);
}

const SPANS = [
  { mark: "**", tag: "strong" },
  { mark: "__", tag: "strong", word: true },
  { mark: "*", tag: "em" },
  { mark: "_", tag: "em", word: true },
];
const LETTER = /[\p{L}\p{N}]/u;

function renderInline(text, options, depth = 0) {
  const nodes = [];
  const unclosed = new Set();
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(...insertMarks(plain, options));
    plain = "";
  };
  for (let at = 0; at < text.length; ) {
    const escaped = options.written && text[at] === "\\" ? ESCAPED.exec(text.slice(at, at + 2)) : null;
    if (escaped) {
      plain += escaped[1];
      at += escaped[0].length;
      continue;
    }
    const link = options.links && text[at] === "[" ? PAGE_LINK.exec(text.slice(at, at + 640)) : null;
    if (link) {
      flush();
      nodes.push(el("a", { class: "link", href: link[2] }, renderInline(link[1], options, MAX_DEPTH)));
      at += link[0].length;
      continue;
    }
    const address = options.web ? findAddress(text, at) : null;
    if (address) {
      flush();
      nodes.push(webLink(address.href, address.words ? renderInline(address.words, { ...options, web: false }, MAX_DEPTH) : [address.href]));
      at += address.length;
      continue;
    }
    const span = depth < MAX_DEPTH ? findSpan(text, at, unclosed) : null;
    if (!span) {
      plain += text[at++];
      continue;
    }
    flush();
    const inner = span.tag === "code" ? [span.inner] : renderInline(span.inner, options, depth + 1);
    nodes.push(el(span.tag, {}, inner));
    at = span.end;
  }
  flush();
  return nodes;
}

/** The link to another site that begins at `at`: one with words, or an address by itself. */
function findAddress(text, at) {
  if (text[at] === "[") {
    const link = WEB_LINK.exec(text.slice(at, at + 1410));
    return link && { href: link[2], words: link[1], length: link[0].length };
  }
  if (!/[hm]/i.test(text[at]) || LETTER.test(text[at - 1] ?? "")) return null;
  const href = ADDRESS.exec(text.slice(at, at + 1010))?.[0].replace(ADDRESS_END, "");
  return href ? { href, words: null, length: href.length } : null;
}

/** The address stays readable in the title, because the words of a link may promise another one. */
function webLink(href, words) {
  const isSafe = ["http:", "https:", "mailto:"].includes(URL.canParse(href) ? new URL(href).protocol : "");
  if (!isSafe) return el("span", {}, words);
  return el("a", { class: "link web", href, title: href, target: "_blank", rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer" }, words);
}

/** The code or emphasis that opens at `at`. `unclosed` collects marks that have no closing mark, which keeps the time linear. */
function findSpan(text, at, unclosed) {
  if (text[at] === "`") {
    const ticks = /^`+/.exec(text.slice(at, at + 8))[0];
    const close = unclosed.has(ticks) ? -1 : text.indexOf(ticks, at + ticks.length);
    if (close < 0) unclosed.add(ticks);
    return close < 0 ? null : { tag: "code", inner: text.slice(at + ticks.length, close), end: close + ticks.length };
  }
  if (text[at] !== "*" && text[at] !== "_") return null;
  for (const { mark, tag, word } of SPANS) {
    if (!text.startsWith(mark, at) || unclosed.has(mark)) continue;
    const start = at + mark.length;
    if (!text[start]?.trim() || (word && LETTER.test(text[at - 1] ?? ""))) continue;
    const close = findClosingMark(text, mark, start, word);
    if (close < 0) unclosed.add(mark);
    else return { tag, inner: text.slice(start, close), end: close + mark.length };
  }
  return null;
}

function findClosingMark(text, mark, start, word) {
  for (let close = text.indexOf(mark, start + 1); close >= 0; close = text.indexOf(mark, close + 1)) {
    const doubled = mark.length === 1 && (text[close + 1] === mark || text[close - 1] === mark);
    const inWord = word && LETTER.test(text[close + mark.length] ?? "");
    const escaped = text[close - 1] === "\\";
    if (text[close - 1].trim() && !doubled && !inWord && !escaped) return close;
  }
  return -1;
}

function insertMarks(text, { known, drawMark }) {
  if (!drawMark) return [text];
  const nodes = [];
  for (const piece of splitMarks(text, known)) {
    if (typeof piece === "string") nodes.push(piece);
    else nodes.push(...joinToLastWord(nodes, piece.numbers.map(drawMark)));
  }
  return nodes;
}

/** Keep citation marks on the same line as the word before them: all go into one span that does not wrap. */
function joinToLastWord(nodes, marks) {
  const last = nodes.at(-1);
  if (last instanceof HTMLElement && last.className === "unbroken") {
    last.append(...marks);
    return [];
  }
  const word = /\S{1,24}\s?$/.exec(typeof last === "string" ? last : "");
  if (!word) return marks;
  const before = nodes.pop().slice(0, word.index);
  const span = el("span", { class: "unbroken" }, word[0], marks);
  return before ? [before, span] : [span];
}
