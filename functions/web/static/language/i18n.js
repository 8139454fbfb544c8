// The texts of the page in English and French, and numbers and dates in the format of each language.

import { loadPart } from "../loading/parts.js";
import { en } from "./words_en.js";

const WORDS = { en };
const LATER = { fr: new URL("./words_fr.js", import.meta.url) };
const LANGUAGE_KEY = "ibid.language";
const listeners = new Set();
let current = "en";

export const LANGUAGES = ["en", "fr"];
export const language = () => current;

/** The text for a key; `{name}` is filled from `values`, and `values.n` chooses between `one` and `other`. */
export function t(key, values = {}) {
  let words = WORDS[current][key] ?? WORDS.en[key] ?? key;
  if (typeof words === "object") words = words[new Intl.PluralRules(current).select(values.n)] ?? words.other;
  return joinPunctuation(words).replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? formatNumber(value) : isolate(String(value));
  });
}

const OVERRIDES = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A name without the marks that change the direction of the text around it, or make "fdp.exe" look like "exe.pdf". */
export const cleanName = (name) => (name ?? "").replace(OVERRIDES, "");

/** A value of a text, which must not reorder the words beside it. */
function isolate(value) {
  const clean = cleanName(value);
  return RIGHT_TO_LEFT.test(clean) ? `\u2068${clean}\u2069` : clean;
}

/** French punctuation such as « » : ; ! ? is joined to the word beside it with a no-break space. */
const joinPunctuation = (words) => (current === "fr" ? words.replace(/(?<=«) | (?=[»:;!?])/g, "\u00a0") : words);

/** The text for a key, or null if the current language has none. */
export const textOrNull = (key) => (WORDS[current][key] === undefined ? null : t(key));

/** Use the stored language, else the first browser language that the page has, else English. */
export async function chooseLanguage() {
  const asked = [storedLanguage(), ...(navigator.languages ?? [navigator.language])];
  const chosen = asked.map((tag) => (tag ?? "").slice(0, 2).toLowerCase()).find((tag) => LANGUAGES.includes(tag)) ?? "en";
  await setLanguage(chosen).catch(() => setLanguage("en"));
}

/** Rejects when the texts of the language cannot be loaded. */
export async function setLanguage(next, { store = false } = {}) {
  WORDS[next] ??= (await loadPart(LATER[next]))[next];
  current = next;
  document.documentElement.lang = next;
  if (store) storeLanguage(next);
  applyWords(document);
  for (const listener of listeners) listener();
}

/** Call back whenever the language changes. */
export function onLanguage(listener) {
  listeners.add(listener);
}

const TARGETS = [
  ["i18n", (node, words) => (node.textContent = words)],
  ["i18nLabel", (node, words) => node.setAttribute("aria-label", words)],
  ["i18nTitle", (node, words) => node.setAttribute("title", words)],
  ["i18nPlaceholder", (node, words) => node.setAttribute("placeholder", words)],
];

/** Fill in what the HTML marks with `data-i18n`, `data-i18n-label`, `data-i18n-title`, `data-i18n-placeholder`. */
function applyWords(root) {
  for (const [name, write] of TARGETS) {
    const attribute = `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    for (const node of root.querySelectorAll(`[${attribute}]`)) write(node, t(node.dataset[name]));
  }
}

export const formatNumber = (value) => new Intl.NumberFormat(current).format(value);
export const formatPercent = (share) => new Intl.NumberFormat(current, { style: "percent" }).format(share);

export function formatSize(bytes) {
  const steps = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const options = { style: "unit", unit: steps[step], unitDisplay: step ? "short" : "narrow", maximumFractionDigits: step > 1 ? 1 : 0 };
  return new Intl.NumberFormat(current, options).format(bytes / 1000 ** step);
}

export function formatDate(iso, options = { dateStyle: "medium", timeStyle: "short" }) {
  return iso ? new Intl.DateTimeFormat(current, options).format(new Date(iso)) : "";
}

/** "5 minutes ago", "yesterday", or the date once it is a week old. */
export function formatAge(iso) {
  const seconds = (new Date(iso) - Date.now()) / 1000;
  const relative = new Intl.RelativeTimeFormat(current, { numeric: "auto", style: "short" });
  if (!iso || Number.isNaN(seconds)) return "";
  if (seconds > -60) return t("time.now");
  if (seconds > -3600) return relative.format(Math.ceil(seconds / 60), "minute");
  if (seconds > -86400) return relative.format(Math.ceil(seconds / 3600), "hour");
  if (seconds > -7 * 86400) return relative.format(Math.ceil(seconds / 86400), "day");
  return formatDate(iso, { dateStyle: "medium" });
}

function storedLanguage() {
  try {
    return localStorage.getItem(LANGUAGE_KEY);
  } catch {
    return null;
  }
}

function storeLanguage(tag) {
  try {
    localStorage.setItem(LANGUAGE_KEY, tag);
  } catch {
    // Without storage the choice is not remembered.
  }
}
