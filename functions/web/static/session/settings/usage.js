// The questions and the cost of the last days, as a chart and as a table for screen readers.

import { el } from "../../shared/dom.js";
import { formatDate, formatNumber, language, t } from "../../language/i18n.js";
import { faultBox } from "../../shared/notices.js";

const DAYS = 30;
const HEIGHT = 72;
const STEP = 10;
const SVG = "http://www.w3.org/2000/svg";

/** A place that fills itself with the chart. */
export function usageChart(api) {
  const place = el("div", { class: "usage", "data-testid": "usage", "aria-busy": "true" }, el("p", { class: "hint" }, t("loading")));
  load(api, place);
  return place;
}

async function load(api, place) {
  try {
    const { days } = await api.get("/usage", { days: DAYS, everyone: true });
    place.replaceChildren(...draw(days));
  } catch (error) {
    place.replaceChildren(faultBox(error, { what: t("failed.usage"), onRetry: () => load(api, place) }));
  }
  place.removeAttribute("aria-busy");
}

function draw(days) {
  const sum = (name) => days.reduce((total, day) => total + day[name], 0);
  const cost = sum("cost_usd");
  const tokens = sum("prompt_tokens") + sum("completion_tokens");
  const facts = [t("usage.questions", { n: sum("questions") }), tokens && t("usage.tokens", { n: tokens }), cost && formatCost(cost)].filter(Boolean);
  const name = cost ? "cost_usd" : "questions";
  return [
    el("h3", { class: "section-title" }, t(cost ? "usage.costTitle" : "usage.questionsTitle", { n: DAYS })),
    bars(days, name),
    el("p", { class: "usage-scale", "aria-hidden": "true" }, el("span", {}, dayOf(days[0])), el("span", {}, dayOf(days.at(-1)))),
    el("p", { class: "usage-facts", "data-testid": "usage-facts" }, facts.join(" · ")),
    cost ? null : el("p", { class: "hint" }, t("usage.noPrices")),
    table(days),
  ].filter(Boolean);
}

function bars(days, name) {
  const largest = Math.max(...days.map((day) => day[name])) || 1;
  const chart = shape("svg", { viewBox: `0 0 ${days.length * STEP} ${HEIGHT}`, preserveAspectRatio: "none", class: "usage-bars", "aria-hidden": "true" });
  days.forEach((day, at) => {
    const height = day[name] ? Math.max(2, (day[name] / largest) * HEIGHT) : 1;
    const bar = shape("rect", { x: at * STEP + 1, y: HEIGHT - height, width: STEP - 2, height, class: day[name] ? "bar-of-day" : "bar-of-day empty" });
    const words = shape("title", {});
    words.textContent = `${dayOf(day)}: ${valueOf(day, name)}`;
    bar.append(words);
    chart.append(bar);
  });
  return chart;
}

/** The same figures for those who cannot see the chart; days without questions are left out. */
function table(days) {
  const rows = days.filter(({ questions }) => questions).map((day) => el("tr", {},
    el("th", { scope: "row" }, dayOf(day)), el("td", {}, formatNumber(day.questions)), el("td", {}, formatCost(day.cost_usd))));
  const heads = ["usage.day", "usage.questionsHead", "usage.costHead"].map((key) => el("th", { scope: "col" }, t(key)));
  return el("table", { class: "visually-hidden" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows));
}

function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const dayOf = ({ day }) => formatDate(day, { day: "numeric", month: "short", timeZone: "UTC" });
const valueOf = (day, name) => (name === "cost_usd" ? formatCost(day.cost_usd) : t("usage.questions", { n: day.questions }));
const formatCost = (dollars) => new Intl.NumberFormat(language(), { style: "currency", currency: "USD", maximumFractionDigits: dollars < 1 ? 4 : 2 }).format(dollars);
