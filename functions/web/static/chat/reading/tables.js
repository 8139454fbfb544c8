// Makes the tables of an answer sortable and copyable.

import { el, setAttribute } from "../../shared/dom.js";
import { t } from "../../language/i18n.js";
import { icon } from "../../shared/icons.js";
import { toast } from "../../shared/notices.js";

const FEWEST_ROWS = 2;
const NUMBER = /^[^\p{L}\d]*\d[\d\s.,'’\u00a0\u202f]*[^\p{L}\d]*$/u;
const LONGEST_NUMBER = 40; // characters, which keeps the time linear
const FORMULA = /^[=+\-@\t\r]/;

/** Give each table in `root` headings that sort its rows, and buttons that copy it. */
export function equipTables(root) {
  for (const frame of root.querySelectorAll(".table")) {
    const table = frame.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    if (rows.length >= FEWEST_ROWS) for (const [at, head] of [...table.tHead.rows[0].cells].entries()) equipHead(head, at, table, rows);
    frame.after(el("p", { class: "table-actions" }, ...takeMarks(frame.nextElementSibling), copyButton(table, "\t", "table.copy"), copyButton(table, ",", "table.copyCsv")));
  }
}

/** The marks of a table, which stand alone in the paragraph after it. */
function takeMarks(paragraph) {
  const marks = [...(paragraph?.querySelectorAll(".citation") ?? [])];
  if (!marks.length || paragraph.tagName !== "P" || textOf(paragraph)) return [];
  paragraph.remove();
  return marks;
}

function equipHead(head, at, table, rows) {
  const sort = () => {
    const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
    const order = next === undefined ? "ascending" : next;
    for (const other of head.parentElement.cells) setAttribute(other, "aria-sort", other === head ? order : null);
    table.tBodies[0].append(...(order ? sortRows(rows, at, order) : rows));
  };
  head.replaceChildren(el("button", { type: "button", class: "sort", "data-testid": "table-sort", title: t("table.sort"), on: { click: sort } }, ...head.childNodes));
}

/** The rows by one column: numbers by their size if all are numbers, otherwise words; empty cells stay last. */
function sortRows(rows, at, order) {
  const texts = new Map(rows.map((row) => [row, textOf(row.cells[at])]));
  const filled = rows.filter((row) => texts.get(row));
  const areNumbers = filled.every((row) => isNumber(texts.get(row)));
  const compare = areNumbers
    ? (one, other) => readNumber(texts.get(one)) - readNumber(texts.get(other))
    : (one, other) => texts.get(one).localeCompare(texts.get(other), undefined, { numeric: true });
  const sorted = filled.sort((one, other) => (order === "ascending" ? compare(one, other) : compare(other, one)));
  return [...sorted, ...rows.filter((row) => !texts.get(row))];
}

/** A number as it is printed, "1,234.5", "1 234,5" or "(12 %)": the last of two different separators is the decimal one. */
export function readNumber(text) {
  const digits = text.replace(/[^\d.,-]/g, "");
  const comma = digits.lastIndexOf(",");
  const point = digits.lastIndexOf(".");
  const decimal = comma > point ? "," : ".";
  const isGroup = (comma < 0 || point < 0) && (digits.split(decimal).length > 2 || (decimal === "," && /,\d{3}$/.test(digits)));
  const plain = isGroup ? digits.replace(/[.,]/g, "") : digits.replaceAll(decimal === "," ? "." : ",", "").replace(",", ".");
  return Number.parseFloat(plain.replace(/(?!^)-/g, "")) * (/^\(.*\)$/.test(text.trim()) || /^[−–]/.test(text.trim()) ? -1 : 1);
}

const isNumber = (text) => text.length <= LONGEST_NUMBER && NUMBER.test(text);

/** The words of a cell, without its citation marks. */
function textOf(cell) {
  if (!cell) return "";
  const copy = cell.cloneNode(true);
  for (const mark of copy.querySelectorAll(".citation")) mark.remove();
  return copy.textContent.replace(/\s+/g, " ").trim();
}

function copyButton(table, separator, words) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(writeTable(table, separator));
      toast(t("table.copied"));
    } catch {
      toast(t("chat.notCopied"), { kind: "bad" });
    }
  };
  return el("button", { type: "button", class: "button quiet small", "data-testid": separator === "," ? "table-copy-csv" : "table-copy", on: { click: copy } }, icon("copy"), t(words));
}

function writeTable(table, separator) {
  const write = (cell) => {
    const text = defuse(textOf(cell));
    return separator === "," && /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [...table.rows].map((row) => [...row.cells].map(write).join(separator)).join("\n");
}

/** Spreadsheets run what begins like a formula, and the words come from documents. */
const defuse = (text) => (FORMULA.test(text) && !isNumber(text.slice(1)) ? `'${text}` : text);
