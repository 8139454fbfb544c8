// Joins the lines of a printed page into paragraphs for reading. Stored text and its offsets keep the line breaks.

const LINE_END = /[^\S\n]*\n[^\S\n]*/g;
const ITEM = /^(?:[-–—*+•◦▪‣·●○■□]\s|\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]\s|\d+\.\d)/i;
const DASH = /^[–—-]\s/;
const SENTENCE_END = /[.!?:;…]["»”’)\]]*$/;
const OPEN_END = /[,(«“[]$/;
const OPEN_WORD =
  /(?:^|[\s(«“’'])(?:an?|and|as|at|by|for|from|in|is|its?|of|on|or|that|the|to|with|aux?|avec|ce|cette|dans|des?|du|en|est|et|la|les?|leur|o[uù]|par|pour|qu[ei]|sa|se|son|sur|une?)$/;
const CUT_WORD = /\p{L}[-‐]$/u;
const CUT_PATH = /\S\/$/;
const COMPOUND = /(?:^|[^\p{L}])(?:all|anti|après|avant|co|cross|demi|ex|high|long|low|mi|mid|multi|non|post|pre|quasi|re|self|semi|short|sous|sub|vice|well)-$/iu;
const FRENCH_TAIL = /^(?:t-)?(?:ce|ci|dire|elles?|ils?|je|là|mêmes?|moi|nous|on|toi|tu|vous)(?!\p{L})/u;
const FIGURES = /(?:^|\s)[€$£+−-]?\d[\d.,’']*\s?[%€$£]?(?=\s|$)/g;
const SHORT = 0.5; // of the width of the page: a line that did not need to end
const NEARLY = 0.92; // of the width: proportional fonts differ

/** The text with its lines joined; headings, lists and tables keep theirs. `isWhole` is false for a part of a page. */
export const unwrap = (text, options) => unwrapParts([text], options)[0];

/** The same for a text in parts, such as those before, in and after a passage. */
export function unwrapParts(parts, { isWhole = true } = {}) {
  const edits = findEdits(parts.join(""), isWhole);
  let from = 0;
  return parts.map((part) => {
    const to = from + part.length;
    const shown = applyEdits(part, from, edits.filter(({ start, end }) => start < to && end > from));
    from = to;
    return shown.replaceAll("\u00ad", "");
  });
}

/** An edit across two parts writes its text in the first of them. */
function applyEdits(part, offset, edits) {
  let shown = "";
  let at = 0;
  for (const { start, end, by } of edits) {
    shown += part.slice(at, Math.max(0, start - offset)) + (start >= offset ? by : "");
    at = Math.min(part.length, end - offset);
  }
  return shown + part.slice(at);
}

/** What to write in place of each line end, as `{start, end, by}`. */
function findEdits(text, isWhole) {
  const ends = [...text.matchAll(LINE_END)];
  if (!ends.length) return [];
  const starts = [0, ...ends.map((end) => end.index + end[0].length)];
  const lines = starts.map((start, at) => text.slice(start, ends[at]?.index ?? text.length));
  const width = widthOf(lines);
  return ends.map((found, at) => {
    const [start, end] = [found.index, found.index + found[0].length];
    if (!continues(lines[at], lines[at + 1], width, at === 0 && !isWhole)) return { start, end, by: found[0].replace(/[^\n]/g, "") };
    if (isCut(lines[at], lines[at + 1], text)) return { start: start - 1, end, by: "" };
    return { start, end, by: CUT_WORD.test(lines[at]) || CUT_PATH.test(lines[at]) ? "" : " " };
  });
}

/** The length that nine lines in ten keep to; long lines of a table or a title do not count. */
function widthOf(lines) {
  const lengths = lines.map(({ length }) => length).sort((one, other) => one - other);
  return lengths[Math.min(lengths.length - 1, Math.floor(lengths.length * 0.9))];
}

/** Whether the line goes on in the next one, rather than ending a paragraph, a heading, an item or a row. */
function continues(line, next, width, isFragment) {
  if (!line || !next || isRow(line, next)) return false;
  const [word] = next.split(/\s/, 1);
  const isFull = line.length + 1 + word.length > width * NEARLY;
  const ends = SENTENCE_END.test(line);
  if (ITEM.test(next) && (ends || !isFull || !DASH.test(next))) return false;
  if (ends && isHeading(next, width)) return false;
  if (!ends && (OPEN_END.test(line) || OPEN_WORD.test(line) || CUT_WORD.test(line))) return true;
  if (isFragment) return !ends && (/^\p{Ll}/u.test(next) || /^[\p{Ll}(«“"]/u.test(line) || line.split(" ").length > 6);
  return isFull || (!ends && /^\p{Ll}/u.test(next) && line.length >= width * SHORT);
}

const isHeading = (line, width) => line.length < width * SHORT && /^[\p{Lu}\d]/u.test(line) && !SENTENCE_END.test(line);

/** Whether the lines are rows: many figures in both, or a header above figures, or cells between bars. */
function isRow(line, next) {
  if (line.includes("\t") || line.startsWith("|")) return true;
  const [one, other] = [line, next].map((it) => (it.match(FIGURES) ?? []).length / it.split(/\s+/).length);
  return (one >= 0.25 && other >= 0.25) || (other >= 0.5 && /^\p{Lu}/u.test(next));
}

/** Whether the hyphen at the end of the line was added to cut a word; a compound keeps its own. */
function isCut(line, next, text) {
  if (!CUT_WORD.test(line) || !/^\p{Ll}/u.test(next) || COMPOUND.test(line) || FRENCH_TAIL.test(next)) return false;
  const compound = `${/[\p{L}]+[-‐]$/u.exec(line)[0]}${/^\p{L}+/u.exec(next)[0]}`;
  return !text.includes(compound);
}
