// Questions that the documents answer, as buttons.

import { el } from "../../shared/dom.js";
import { icon } from "../../shared/icons.js";

/** `onAsk(question)` is called for the question that is pressed; null without questions. */
export function suggestionList(questions, { title, onAsk }) {
  if (!questions?.length) return null;
  const buttons = questions.map((question) => el("li", {}, el("button", {
    type: "button", class: "suggestion", "data-testid": "suggestion", on: { click: () => onAsk(question) },
  }, icon("send"), el("span", {}, question))));
  return el("section", { class: "suggestions", "data-testid": "suggestions" }, el("h3", { class: "section-title" }, title), el("ul", {}, buttons));
}
