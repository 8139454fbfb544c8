// One turn of a conversation: the question, and the answer in each of its states.

import { el } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { faultBox, toast } from "../shared/notices.js";
import { citationMark, nameOf, locationOf, sourceList, withBestChecks } from "./citations.js";
import { quoteOf, renderExtracts, writeExtracts } from "./extracts.js";
import { suggestionList } from "./asking/suggestions.js";
import { renderMarkdown, renderVerbatim } from "./markdown.js";
import { QuestionHead } from "./reading/question.js";
import { Rating } from "./reading/rating.js";
import { equipTables } from "./reading/tables.js";

export class Turn {
  #result = null;
  #streamed = "";
  #frame = 0;
  #nextDrawing = 0;
  #note = null;

  /**
   * `verbatim`: the answer quotes documents word for word, so its text is not parsed as Markdown. `onSaveAsNote(messageId)`
   * resolves to the note that the answer was saved as, or to null if cancelled. `onRate(messageId, rating, reason)` keeps a judgement,
   * `onAsk(question)` asks a suggested question, and `onReplace(turn, question)` the same or an edited one in place of this.
   */
  constructor({ question, questionId = null, verbatim = false, card, onRetry = null, onReplace = null, ...handlers }) {
    Object.assign(this, { question, questionId, verbatim, card, onRetry, onReplace, wholeLibraryOnce: false }, handlers);
    this.versions = [this];
    this.head = question === null ? null : new QuestionHead(question, {
      onEdit: onReplace && ((edited) => onReplace(this, edited)), onStep: (by) => this.showVersion(this.versions.indexOf(this) + by),
    });
    this.text = el("div", { class: "answer-text", "data-testid": "answer-text" });
    this.status = el("p", { class: "answer-status", hidden: true });
    this.after = el("div", { class: "answer-after" });
    this.reasonPlace = el("div", { class: "rating-place" });
    this.answer = el("article", { class: "answer", "data-testid": "answer", "aria-label": t("chat.answer") }, this.status, this.text, this.after);
    this.end = el("div", { class: "turn-end" });
    this.node = el("section", { class: "turn" }, this.head?.node, this.answer, this.end);
    this.wait();
  }

  /** Make these turns, oldest first, the versions of one question, of which one is shown at a time. */
  joinVersions(turns) {
    turns.forEach((turn, at) => {
      turn.versions = turns;
      turn.head?.setVersions(at, turns.length);
    });
  }

  /** Show another version in place of this one. */
  showVersion(at) {
    const other = this.versions[at];
    other.node.classList.remove("asked");
    this.node.replaceWith(other.node);
    const steps = [...other.node.querySelectorAll(".versions button:enabled")];
    (at > this.versions.indexOf(this) ? steps.at(-1) : steps[0])?.focus({ preventScroll: true });
  }

  wait() {
    this.#setState("waiting");
    this.answer.setAttribute("aria-busy", "true");
    this.status.hidden = false;
    this.status.replaceChildren(el("span", { class: "dots", "aria-hidden": "true" }), t("chat.searching"));
  }

  /** Append streamed text; drawing it takes at most a fifth of the time, however long it gets. */
  stream(piece) {
    this.#streamed += piece;
    if (this.answer.dataset.state !== "streaming") {
      this.#setState("streaming");
      this.status.hidden = true;
    }
    this.#frame ||= requestAnimationFrame((now) => this.#drawStreamed(now));
  }

  #drawStreamed(now) {
    const isEarly = now < this.#nextDrawing;
    this.#frame = isEarly ? requestAnimationFrame((later) => this.#drawStreamed(later)) : 0;
    if (isEarly || this.#result) return;
    const begun = performance.now();
    this.text.replaceChildren(this.#render(this.#streamed));
    this.#nextDrawing = now + 5 * (performance.now() - begun);
  }

  get hasAnswer() {
    return Boolean(this.#result?.answer);
  }

  /** The final answer: `{answer, sources, scope, status, mode, usage}`. */
  finish(result) {
    this.#result = result;
    this.#setState(result.status === "interrupted" ? "stopped" : "done");
    this.#endWaiting();
    this.answer.dataset.mode = result.mode ?? "model";
    const citations = citationsOf(result);
    this.text.replaceChildren(drawText(result, citations, (number) => this.#drawMark(citations, number)));
    equipTables(this.text);
    if (result.mode === "guard") this.#drawRefusal(result);
    this.after.replaceChildren(...[
      result.status === "interrupted" ? note("stop", t("chat.interrupted")) : null,
      this.#degradedNote(result),
      result.status === "failed" ? note("alert", t("chat.notAnswered")) : null,
      ["failed", "interrupted"].includes(result.status) ? this.#retryRow() : null,
      hasUnsupportedSection(result, citations) ? note("alert", t("chat.unsupportedSection")) : null,
      this.#unsupportedNumbersNote(result),
      citations.size ? sourceList([...citations.values()], { title: t(result.mode === "guard" ? "sources.nearest" : "sources.title"), onOpen: this.onCite }) : null,
      result.mode === "guard" ? this.#nextSteps(result) : null,
      result.answer ? this.#footer(result) : null,
      this.reasonPlace,
      this.onAsk && suggestionList(result.suggestions, { title: t("suggestions.next"), onAsk: this.onAsk }),
    ].filter(Boolean));
  }

  #drawMark(citations, number) {
    const mark = citationMark(citations.get(number), this.onCite);
    this.card.attach(mark, citations);
    return mark;
  }

  /** The user stopped the answer: the text received so far stays. */
  stop() {
    this.#endWaiting();
    this.#setState("stopped");
    this.text.replaceChildren(this.#render(this.#streamed));
    this.after.replaceChildren(...[note("stop", t("chat.stopped")), this.#retryRow()].filter(Boolean));
  }

  fail(error) {
    this.#endWaiting();
    this.#setState("failed");
    this.text.replaceChildren(this.#render(this.#streamed));
    this.after.replaceChildren(faultBox(error, { testid: "answer-error", onRetry: this.onRetry && (() => this.onRetry(this)), retryTestid: "answer-retry" }));
  }

  /** Redraw after the language has changed. */
  redraw() {
    this.head?.draw();
    if (this.#result) this.finish(this.#result);
  }

  #render(text) {
    return this.verbatim ? renderVerbatim(text) : renderMarkdown(text, { web: true });
  }

  #setState(state) {
    this.answer.dataset.state = state;
  }

  #endWaiting() {
    cancelAnimationFrame(this.#frame);
    this.status.hidden = true;
    this.answer.removeAttribute("aria-busy");
  }

  /** A refusal is shown above the text. */
  #drawRefusal(result) {
    this.status.hidden = false;
    this.status.replaceChildren(icon("alert"), el("span", { "data-testid": "answer-mode" }, modeText(result)));
  }

  /** A warning that lists the figures found in none of the passages cited for them; null when there are none. */
  #degradedNote({ degraded }) {
    if (!degraded?.length) return null;
    const shown = note("alert", t("chat.degraded", { names: degraded.join(", ") }));
    shown.dataset.testid = "answer-degraded";
    return shown;
  }

  #unsupportedNumbersNote({ sections }) {
    const numbers = [...new Set((sections ?? []).flatMap(({ unsupported_numbers: found }) => found ?? []))];
    if (!numbers.length) return null;
    const shown = note("alert", t("chat.unsupportedNumbers", { n: numbers.length, numbers: numbers.join(" · ") }));
    shown.dataset.testid = "unsupported-numbers";
    return shown;
  }

  /** What to do about a question that the documents do not answer. */
  #nextSteps({ scope }) {
    const step = (name, testid, words, click) => el("button", { type: "button", class: "button small", "data-testid": testid, on: { click } }, icon(name), words);
    const isNarrowed = scope?.kind && scope.kind !== "library" && this.question !== null;
    return el("div", { class: "next-steps", "data-testid": "next-steps" },
      el("p", {}, t("refusal.hint")),
      isNarrowed ? step("search", "ask-everywhere", t("refusal.everywhere"), () => this.onAskEverywhere(this)) : null,
      this.question === null ? null : step("quote", "show-nearest", t("refusal.nearest"), () => this.onShowNearest(this.question)),
      step("upload", "add-documents", t("library.add"), this.onUpload));
  }

  #retryRow() {
    if (!this.onRetry) return null;
    return el("p", {}, el("button", { type: "button", class: "button small", "data-testid": "answer-retry", on: { click: () => this.onRetry(this) } }, icon("retry"), t("chat.retry")));
  }

  #footer(result) {
    const copy = el("button", { type: "button", class: "button quiet small", "data-testid": "answer-copy", title: t("chat.copy"), on: { click: () => this.#copy(result) } }, icon("copy"), el("span", {}, t("chat.copy")));
    const scope = scopeText(result.scope);
    return el("footer", { class: "answer-foot" },
      el("p", { class: "answer-facts" },
        result.mode === "guard" ? null : el("span", { "data-testid": "answer-mode" }, modeText(result)),
        scope ? el("span", { "data-testid": "answer-scope" }, scope) : null,
        result.search_query ? el("span", { "data-testid": "answer-searched" }, t("chat.searchedFor", { query: result.search_query })) : null,
        result.translated_query ? el("span", { "data-testid": "answer-translated" }, t("chat.translatedFor", { query: result.translated_query })) : null),
      el("div", { class: "answer-actions" },
        result.message_id ? this.#ratingControl(result) : null, this.#againButton(), result.message_id ? this.#saveAsNoteControl(result.message_id) : null, copy));
  }

  #ratingControl(result) {
    const save = async (rating, reason) => {
      await this.onRate(result.message_id, rating, reason);
      Object.assign(result, { rating, rating_reason: reason });
    };
    return new Rating({ rating: result.rating ?? null, reason: result.rating_reason ?? "", save, reasonPlace: this.reasonPlace }).node;
  }

  /** Asks the same question again; the answer before stays as an earlier version. Only the last turn offers it. */
  #againButton() {
    if (!this.onReplace || this.question === null) return null;
    return el("button", {
      type: "button", class: "button quiet small last-only", "data-testid": "answer-again", title: t("chat.againWhy"), on: { click: () => this.onReplace(this, this.question) },
    }, icon("retry"), el("span", {}, t("chat.again")));
  }

  /** A button that saves the answer as a note; once saved, a link to the note. */
  #saveAsNoteControl(id) {
    if (this.#note) {
      const { title, id: noteId } = this.#note;
      return el("span", { class: "answer-kept" }, t("saveAsNote.saved"), " ",
        el("button", { type: "button", class: "link", "data-testid": "answer-note", on: { click: () => this.onOpenNote(noteId) } }, title || t("note.untitled")));
    }
    const save = async () => {
      const note = await this.onSaveAsNote(id);
      if (!note) return;
      this.#note = note;
      const link = this.#saveAsNoteControl(id);
      button.replaceWith(link);
      link.querySelector("button").focus({ preventScroll: true });
    };
    const button = el("button", {
      type: "button", class: "button quiet small", "data-testid": "answer-keep", title: t("saveAsNote.button"), "aria-haspopup": "dialog", on: { click: save },
    }, icon("note"), el("span", {}, t("saveAsNote.button")));
    return button;
  }

  async #copy(result) {
    const citations = citationsOf(result);
    const text = isExtract(result) ? writeExtracts(result.sections, citations) : result.answer;
    const list = [...citations.values()].map((citation) => `[${citation.number}] ${nameOf(citation)}, ${locationOf(citation)}: “${quoteOf(citation)}”`);
    try {
      await navigator.clipboard.writeText([text, ...list].join("\n"));
      toast(t("chat.copied"));
    } catch {
      toast(t("chat.notCopied"), { kind: "bad" });
    }
  }
}

const citationsOf = ({ sources }) => new Map(withBestChecks(sources ?? []).map((citation) => [citation.number, citation]));

const isExtract = ({ mode, sections }) => mode === "extractive" && sections?.length > 0;

function drawText(result, citations, drawMark) {
  if (isExtract(result)) return renderExtracts(result.sections, citations, drawMark);
  const render = ["extractive", "guard"].includes(result.mode) ? renderVerbatim : renderMarkdown;
  return render(result.answer ?? "", { known: new Set(citations.keys()), drawMark, web: true });
}

/** Whether a model wrote a section that no passage bears out; older answers only say whether its words were found. */
function hasUnsupportedSection({ mode, sections }, citations) {
  const bearsOut = ({ support, check }) => (support ? support === "high" : check !== "unverified");
  const supports = (number) => citations.has(number) && bearsOut(citations.get(number));
  const claims = (sections ?? []).filter(({ is_remark: isRemark }) => !isRemark);
  return mode === "model" && claims.some(({ citations: numbers }) => !(numbers ?? []).some(supports));
}

/** How the text was produced: refusal, extract, or language model. */
function modeText({ mode, usage }) {
  if (mode === "guard") return t("mode.guard");
  if (mode === "extractive") return t("mode.extractive");
  return usage?.model ? t("mode.modelNamed", { model: usage.model }) : t("mode.model");
}

function scopeText(scope) {
  if (!scope?.kind) return "";
  if (scope.kind === "documents" || scope.kind === "conversation") return t("answerScope.documents", { n: scope.document_ids?.length ?? 0 });
  return t(`answerScope.${scope.kind}`);
}

const note = (name, words) => el("p", { class: "note" }, icon(name), words);
