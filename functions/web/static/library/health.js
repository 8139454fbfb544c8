// The health report of a document, and what the file says of itself, in words.

import { formatDate, formatNumber, formatPercent, known, t } from "../shared/i18n.js";

const GOOD_ENOUGH = 0.8;
const RANGES = 12;
const TOLD_ELSEWHERE = ["no_text", "hidden_text"];
const DAY = /^\d{4}-\d\d-\d\d/;
const METADATA = ["title", "authors", "journal", "published_at", "doi"];

/** `[{key, text, tone}]`: every fact a sentence of its own; `tone` is `good`, `warn` or `plain`. */
export function describeHealth(health, { file_type: type, page_count: pages }) {
  const kind = type === "pdf" ? "pages" : "parts";
  return [
    pages ? textOf(health.pages_without_text ?? [], pages, kind) : null,
    recognition(health.ocr),
    ...warnings(health.warnings ?? {}, kind),
    hidden(health.hidden_text ?? [], kind),
    health.tables ? row("tables", t("health.tables", { n: health.tables })) : null,
    health.running_lines?.length ? row("running_lines", t("health.runningLines", { lines: health.running_lines.map(lineOf).join(", ") })) : null,
    languages(health.languages ?? {}),
    chunks(health),
    selfRetrieval(health.self_retrieval),
  ].filter(Boolean);
}

/** `[{key, value}]`: title, authors, journal, date and DOI, as far as they were found. */
export function describeMetadata(log) {
  return METADATA.map((key) => ({ key, value: wordsOf(log?.[`${key}_extracted`]) })).filter(({ value }) => value);
}

/** "4, 7–9": page numbers as people write them. */
export function pageRanges(numbers) {
  const ranges = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const shown = ranges.slice(0, RANGES).map(([from, to]) => (from === to ? formatNumber(from) : `${formatNumber(from)}–${formatNumber(to)}`));
  return shown.join(", ") + (ranges.length > RANGES ? ", …" : "");
}

const onPages = (pages, kind) => t(`health.on.${kind}`, { n: pages.length, which: pageRanges(pages) });
const row = (key, text, tone = "plain") => ({ key, text, tone });

function textOf(without, pages, kind) {
  if (!without.length) return row("pages_without_text", t(`health.allText.${kind}`, { n: pages }), "good");
  return row("pages_without_text", t(`health.withoutText.${kind}`, { n: without.length, pages, which: pageRanges(without) }), "warn");
}

/** Confidence comes as 0…100. */
function recognition(ocr) {
  if (!ocr?.pages) return null;
  const lowest = ocr.pages > 1 && ocr.lowest ? ` ${t("health.ocrLowest", { percent: formatPercent(ocr.lowest.confidence / 100), page: ocr.lowest.page })}` : "";
  return row("ocr", t("health.ocr", { n: ocr.pages, percent: formatPercent(ocr.confidence / 100) }) + lowest);
}

function warnings(byCode, kind) {
  return Object.entries(byCode)
    .filter(([code, pages]) => pages.length && !TOLD_ELSEWHERE.includes(code))
    .map(([code, pages]) => row(code, `${known(`warning.${code}`) ?? code.replaceAll("_", " ")} ${onPages(pages, kind)}`, "warn"));
}

function hidden(stretches, kind) {
  if (!stretches.length) return null;
  const characters = stretches.reduce((sum, { characters: count }) => sum + count, 0);
  return row("hidden_text", `${t("health.hidden", { n: characters })} ${onPages(stretches.map(({ page }) => page), kind)}`, "warn");
}

/** Patterns say "top: annual report #". */
const lineOf = (pattern) => `“${pattern.replace(/^(?:top|bottom): /, "")}”`;

function languages(byLanguage) {
  const found = Object.entries(byLanguage).sort(([, one], [, other]) => other - one);
  const total = found.reduce((sum, [, count]) => sum + count, 0);
  if (!total) return null;
  const names = found.map(([lang, count]) => [known(`lang.${lang}`) ?? lang, found.length > 1 ? formatPercent(count / total) : null].filter(Boolean).join(" "));
  return row("languages", t("health.languages", { names: names.join(", ") }));
}

function chunks({ chunks: count, chunks_not_embedded: without, chunking_strategy: strategy }) {
  if (!count) return null;
  const made = known(`strategy.${strategy}`);
  const text = t("health.chunks", { n: count }) + (made ? ` (${made})` : "");
  if (!without) return row("chunks", `${text}.`);
  return row("chunks", `${text}. ${t("health.notEmbedded", { n: without })}`, "warn");
}

function selfRetrieval(score) {
  if (!score?.sentences) return null;
  const good = score.found >= GOOD_ENOUGH * score.sentences;
  return row("self_retrieval", t("health.selfRetrieval", { found: score.found, n: score.sentences }), good ? "good" : "warn");
}

function wordsOf(value) {
  if (Array.isArray(value)) return value.filter(Boolean).join(", ");
  if (DAY.test(value) && !Number.isNaN(Date.parse(value))) return formatDate(value.slice(0, 10), { dateStyle: "long", timeZone: "UTC" });
  return value ? String(value) : "";
}
