// What an empty conversation shows: a first step that depends on what the library contains.

import { el } from "../../shared/dom.js";
import { t } from "../../language/i18n.js";
import { icon } from "../../shared/icons.js";
import { suggestionList } from "./suggestions.js";

/** `loading`, `empty`, `reading` (documents, but none indexed yet) or `ready`. */
export function libraryState({ all, indexed, complete }) {
  if (!complete) return "loading";
  return indexed ? "ready" : all ? "reading" : "empty";
}

/** `questions` are some that the library answers; `onAsk(question)` is called for the one that is pressed. */
export function welcome(state, { questions, onAsk, onUpload, onSample }) {
  if (state === "loading") return el("div", { class: "welcome", "data-testid": "welcome", "data-state": state });
  return el("div", { class: "welcome", "data-testid": "welcome", "data-state": state },
    el("p", { class: "welcome-title" }, t(`welcome.${state}.title`)),
    el("p", { class: "welcome-text" }, t(`welcome.${state}.text`)),
    state === "empty"
      ? el("p", { class: "welcome-actions" },
        el("button", { type: "button", class: "button primary large", on: { click: onUpload } }, icon("upload"), t("welcome.choose")),
        el("button", { type: "button", class: "button large", "data-testid": "welcome-sample", on: { click: onSample } }, t("welcome.sample")))
      : null,
    state === "ready" && suggestionList(questions, { title: t("suggestions.start"), onAsk }) || example());
}

/** An illustration: a sentence with a citation mark, and the cited passage on its page. */
function example() {
  return el("figure", { class: "example", "aria-hidden": "true" },
    el("p", { class: "example-answer" }, t("example.answer"), " ", el("span", { class: "citation still" }, "1")),
    el("div", { class: "example-page" },
      el("p", { class: "example-place" }, icon("document"), t("example.place")),
      el("p", { class: "example-text" }, t("example.before"), " ", el("mark", {}, t("example.quote")), " ", t("example.after"))));
}
