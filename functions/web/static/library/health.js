// Writes the health report and the metadata of a document as text.

import { formatDate, formatNumber, formatPercent, textOrNull, t } from "../language/i18n.js";

const MOST_RANGES = 12;
const REPORTED_SEPARATELY = ["no_text", "hidden_text"];
const TONE_OF = { good: "good", check: "warn", bad: "bad" };
const STARTS_WITH_DATE = /^\d{4}-\d\d-\d\d/;
const METADATA = ["title", "authors", "journal", "published_at", "doi"];

/** One sentence for each fact, as `[{key, text, tone}]`; `tone` is `good`, `warn`, `bad` or `plain`. The quality comes first. */
export function describeHealth(health, { file_type: type, page_count: pages }) {
  const kind = type === "pdf" ? "pages" : "parts";
  const toneOf = (figure) => (health.quality ? TONE_OF[health.quality.reasons[figure]] ?? "good" : "plain");
  return [
    quality(health.quality),
    ...damagedText(health.text, kind, toneOf),
    pages ? textCoverage(health.pages_without_text ?? [], pages, kind) : null,
    recognizedText(health.ocr, toneOf("ocr_confidence")),
    ...warnings(health.warnings ?? {}, kind),
    hiddenText(health.hidden_text ?? [], kind),
    health.tables ? row("tables", t("health.tables", { n: health.tables })) : null,
    health.running_lines?.length ? row("running_lines", t("health.runningLines", { lines: health.running_lines.map(quotedLine).join(", ") })) : null,
    languages(health.languages ?? {}),
    chunks(health),
    selfRetrieval(health.self_retrieval, toneOf("self_retrieval")),
  ].filter(Boolean);
}

/** Title, authors, journal, date and DOI, as far as they were found, as `[{key, value}]`. */
export function describeMetadata(log) {
  return METADATA.map((key) => ({ key, value: metadataText(log?.[`${key}_extracted`]) })).filter(({ value }) => value);
}

/** Page numbers with consecutive ones joined, like "4, 7–9". */
export function pageRanges(numbers) {
  const ranges = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const shown = ranges.slice(0, MOST_RANGES).map(([from, to]) => (from === to ? formatNumber(from) : `${formatNumber(from)}–${formatNumber(to)}`));
  return shown.join(", ") + (ranges.length > MOST_RANGES ? ", …" : "");
}

const onPages = (pages, kind) => t(`health.on.${kind}`, { n: pages.length, which: pageRanges(pages) });
const worst = (...tones) => ["bad", "warn"].find((tone) => tones.includes(tone)) ?? "good";
const row = (key, text, tone = "plain") => ({ key, text, tone });

/** Whether the document was read well, as the server rates it; nothing for documents that were indexed before ratings. */
function quality(found) {
  return found ? row("quality", t(`health.quality.${found.rating}`), TONE_OF[found.rating]) : null;
}

/** The figures of the text that are not good. */
function damagedText(text, kind, toneOf) {
  if (!text) return [];
  const where = text.garbled_pages.length ? ` ${onPages(text.garbled_pages, kind)}` : "";
  return [
    row("unlikely_words", t("health.unlikelyWords", { percent: formatPercent(text.unlikely_words) }) + where, worst(toneOf("unlikely_words"), toneOf("garbled_pages"))),
    row("broken_sentences", t("health.brokenSentences"), toneOf("broken_sentences")),
    row("split_words", t("health.splitWords"), toneOf("split_words")),
  ].filter(({ tone }) => tone !== "good");
}

function textCoverage(without, pages, kind) {
  if (!without.length) return row("pages_without_text", t(`health.allText.${kind}`, { n: pages }), "good");
  return row("pages_without_text", t(`health.withoutText.${kind}`, { n: without.length, pages, which: pageRanges(without) }), "warn");
}

/** The server gives confidence as 0 to 100. */
function recognizedText(ocr, tone) {
  if (!ocr?.pages) return null;
  const lowest = ocr.pages > 1 && ocr.lowest ? ` ${t("health.ocrLowest", { percent: formatPercent(ocr.lowest.confidence / 100), page: ocr.lowest.page })}` : "";
  return row("ocr", t("health.ocr", { n: ocr.pages, percent: formatPercent(ocr.confidence / 100) }) + lowest, tone === "good" ? "plain" : tone);
}

function warnings(byCode, kind) {
  return Object.entries(byCode)
    .filter(([code, pages]) => pages.length && !REPORTED_SEPARATELY.includes(code))
    .map(([code, pages]) => row(code, `${textOrNull(`warning.${code}`) ?? code.replaceAll("_", " ")} ${onPages(pages, kind)}`, "warn"));
}

function hiddenText(stretches, kind) {
  if (!stretches.length) return null;
  const characters = stretches.reduce((sum, { characters: count }) => sum + count, 0);
  return row("hidden_text", `${t("health.hidden", { n: characters })} ${onPages(stretches.map(({ page }) => page), kind)}`, "warn");
}

/** Patterns look like "top: annual report #". */
const quotedLine = (pattern) => `“${pattern.replace(/^(?:top|bottom): /, "")}”`;

function languages(byLanguage) {
  const found = Object.entries(byLanguage).sort(([, one], [, other]) => other - one);
  const total = found.reduce((sum, [, count]) => sum + count, 0);
  if (!total) return null;
  const names = found.map(([lang, count]) => [textOrNull(`lang.${lang}`) ?? lang, found.length > 1 ? formatPercent(count / total) : null].filter(Boolean).join(" "));
  return row("languages", t("health.languages", { names: names.join(", ") }));
}

function chunks({ chunks: count, chunks_not_embedded: without, chunking_strategy: strategy }) {
  if (!count) return null;
  const made = textOrNull(`strategy.${strategy}`);
  const text = t("health.chunks", { n: count }) + (made ? ` (${made})` : "");
  if (!without) return row("chunks", `${text}.`);
  return row("chunks", `${text}. ${t("health.notEmbedded", { n: without })}`, "warn");
}

function selfRetrieval(score, tone) {
  if (!score?.sentences) return null;
  return row("self_retrieval", t("health.selfRetrieval", { found: score.found, n: score.sentences }), tone);
}

function metadataText(value) {
  if (Array.isArray(value)) return value.filter(Boolean).join(", ");
  if (STARTS_WITH_DATE.test(value) && !Number.isNaN(Date.parse(value))) return formatDate(value.slice(0, 10), { dateStyle: "long", timeZone: "UTC" });
  return value ? String(value) : "";
}
