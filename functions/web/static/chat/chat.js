// The open conversation: asks questions, streams the answers, stops them, and shows errors.

import { byId, el, setText } from "../shared/dom.js";
import { ApiError } from "../shared/http.js";
import { cleanName, language, onLanguage, t } from "../language/i18n.js";
import { clearAnnouncements, announce, faultBox, toast } from "../shared/notices.js";
import { icon } from "../shared/icons.js";
import { LongThread } from "../shared/lists/long_thread.js";
import { readEvents } from "../shared/sse.js";
import { Turn } from "./answer.js";
import { Draft } from "./asking/draft.js";
import { Speech } from "./asking/speech.js";
import { libraryState, welcome } from "./asking/welcome.js";

const MESSAGES_PER_PAGE = 100;

export class Chat {
  #conversation = null;
  #turns = [];
  #running = null;
  #left = new Map();
  #opening = 0;
  #library = "loading";
  #indexed = 0;
  #starters = { lang: null, questions: [] };

  /**
   * `onConversation(id)` is called when another conversation becomes current, `onStarted(id)` when the first question gave it
   * its id, `onAnswered()` when the list of conversations is out of date, `onDrawn()` when a conversation was loaded. `onSaveAsNote(address)` saves an answer by POST to `address` and resolves to the note, or to null if cancelled.
   */
  constructor({ api, scope, card, onCite, onConversation, onStarted, onAnswered, onDrawn, onUpload, onShowNearest, onSample, onSaveAsNote, onOpenNote }) {
    Object.assign(this, { api, scope, card, onCite, onConversation, onStarted, onAnswered, onDrawn, onUpload, onShowNearest, onSample, onSaveAsNote, onOpenNote });
    this.thread = byId("thread");
    this.messages = byId("messages");
    this.questionBox = byId("question");
    this.extractive = false;
    this.address = "/chat";
    this.draft = new Draft(this.questionBox);
    this.long = new LongThread(this.messages);
    this.#listen();
    this.#fitQuestionBox();
  }

  get conversation() {
    return this.#conversation;
  }

  /** What an empty conversation shows depends on what the library contains. */
  setCounts(counts) {
    const state = libraryState(counts);
    if (state === this.#library && counts.indexed === this.#indexed) return;
    [this.#library, this.#indexed, this.#starters.lang] = [state, counts.indexed, null];
    if (this.#isWelcoming) this.#drawWelcome();
  }

  get #isWelcoming() {
    return !this.thread.childElementCount || this.thread.querySelector(".welcome") !== null;
  }

  setTitle(title) {
    const heading = byId("conversation-title");
    const shown = this.#conversation ? cleanName(title) : "";
    heading.classList.toggle("visually-hidden", !shown);
    setText(heading, shown || "Ibid");
    document.title = shown ? `${shown} · Ibid` : "Ibid";
  }

  /** Move the focus to the next (1) or previous (-1) citation mark. */
  stepToMark(by) {
    const marks = this.long.findMarks(".answer-text .citation");
    const at = marks.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? marks[0] : marks.at(-1)) : marks[at + by];
    if (!next) return;
    this.long.reveal(next);
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  /** Start a new conversation. */
  clear() {
    this.#discardTurns();
    this.#setConversation(null);
    this.#drawWelcome();
    this.questionBox.focus({ preventScroll: true });
  }

  /** Show all messages of an earlier conversation. */
  async open(id) {
    this.#discardTurns();
    this.#setConversation(id);
    const opening = (this.#opening = Date.now() + Math.random());
    this.#unwatchLastAnswer();
    this.thread.replaceChildren(el("p", { class: "hint loading", role: "status" }, t("loading")));
    try {
      const messages = await this.#loadMessages(id);
      if (this.#opening !== opening) return;
      this.#opening = 0;
      this.#drawHistory(messages);
      this.#restoreScope(messages.find(({ role }) => role === "user")?.scope);
    } catch (error) {
      if (this.#opening !== opening) return;
      this.#opening = 0;
      this.thread.replaceChildren(error.status === 404 ? goneBox() : faultBox(error, { what: t("failed.conversation"), onRetry: () => this.open(id) }));
    }
  }

  /** Ask a question; with `replacing` in place of that turn, which stays as an earlier version if it has an answer. */
  async ask(question, { replacing = null } = {}) {
    if (!question.trim() || this.#running) return;
    this.#opening = 0;
    const turn = this.#createTurn({ question, verbatim: this.extractive, onRetry: (it) => this.#retry(it), onReplace: (it, text) => this.#replace(it, text) });
    const run = { turn, replaces: replacing?.questionId ?? undefined, stop: new AbortController(), speech: new Speech() };
    if (replacing) this.#showInPlace(turn, replacing);
    else this.#appendTurn(turn);
    this.#write("");
    this.#setRunning(run);
    clearAnnouncements();
    announce(t("chat.searching"));
    try {
      await this.#stream(question, run);
    } catch (error) {
      this.#showFailure(error, question, run);
    }
    this.#left.delete(run.conversation);
    if (this.#running === run) this.#setRunning(null);
  }

  async #stream(question, run) {
    const conversation = (run.conversation = this.#conversation) ?? undefined;
    await this.scope.synced;
    const body = { query: question, stream: true, conversation_id: conversation, replaces: run.replaces, ...this.scope.requestFields };
    run.target = this.scope.target;
    run.turn.wholeLibraryOnce = this.scope.wholeLibraryOnce;
    if (this.#running === run) this.scope.wholeLibraryOnce = false;
    const response = await this.api.call("POST", this.address, { body, signal: run.stop.signal, accept: "text/event-stream" });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return this.#finish(await response.json(), run);
    for await (const { data } of readEvents(response.body)) {
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error);
      run.turn.questionId = event.meta?.question_id ?? run.turn.questionId;
      if (event.meta?.conversation_id) this.#adoptConversation(event.meta.conversation_id, run);
      if (event.text) {
        run.turn.stream(event.text);
        if (this.#running === run) run.speech.add(event.text);
      }
      if (event.done) return this.#finish(event, run);
    }
    throw new ApiError({ code: "cut_off" });
  }

  #adoptConversation(id, run) {
    if (this.#left.delete(run.conversation)) this.#left.set(id, run);
    run.conversation = id;
    if (this.#running !== run || this.#conversation === id) return;
    this.#conversation = id;
    this.scope.startConversation(id, run.target);
    this.onConversation(id);
    this.onStarted(id);
  }

  #finish(result, run) {
    this.#adoptConversation(result.conversation_id, run);
    run.turn.questionId = result.question_id;
    run.turn.finish(result);
    if (this.#running === run) run.speech.finish(t("chat.complete", { n: result.sources?.length ?? 0 }));
    else toast(t("chat.ready", { question: run.turn.question }), { testid: "answer-ready" });
    this.onAnswered();
  }

  #showFailure(error, question, run) {
    if (error.name === "AbortError") {
      run.turn.stop();
      run.speech.finish(t("chat.stopped"));
      this.onAnswered();
      return;
    }
    const shown = error instanceof ApiError ? error : new ApiError({ code: error instanceof SyntaxError ? "garbled" : "network" });
    run.turn.fail(shown);
    if (this.#running === run && !this.questionBox.value) {
      this.#write(question);
      if (run.turn.wholeLibraryOnce) this.scope.wholeLibraryOnce = true;
    }
  }

  /** Ask the question again, replacing the turn that failed. */
  #retry(turn) {
    if (this.questionBox.value === turn.question) this.#write("");
    this.#replace(turn, turn.question);
  }

  /** Ask this question, the same or an edited one, in place of a turn. */
  #replace(turn, question) {
    if (this.#running) return;
    if (turn.wholeLibraryOnce) this.scope.wholeLibraryOnce = true;
    this.ask(question, { replacing: turn });
    this.questionBox.focus({ preventScroll: true });
  }

  #showInPlace(turn, before) {
    this.#turns = this.#turns.map((other) => (other === before ? turn : other));
    before.node.replaceWith(turn.node);
    turn.joinVersions([...before.versions.filter((version) => version.hasAnswer), turn]);
    this.#watchLastAnswer();
    turn.node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  async #rate(messageId, rating, reason) {
    const address = `/conversations/${this.#conversation}/messages/${messageId}/rating`;
    if (rating) await this.api.call("PUT", address, { body: { rating, reason } });
    else await this.api.delete(address);
  }

  /** Ask the question once more, of the whole library. */
  #askEverywhere({ question }) {
    this.scope.wholeLibraryOnce = true;
    this.ask(question);
  }

  /** Add the sample document, and prepare a question that it answers. */
  #trySample() {
    this.onSample();
    this.#write(t("welcome.sampleQuestion"));
    this.questionBox.focus();
  }

  #createTurn(fields) {
    const onSaveAsNote = (id) => this.onSaveAsNote(`/conversations/${this.#conversation}/messages/${id}/note`);
    const onRate = (...judgement) => this.#rate(...judgement);
    return new Turn({ ...fields, card: this.card, onSaveAsNote, onRate, onAsk: (question) => this.ask(question), onCite: this.onCite, onOpenNote: this.onOpenNote, onUpload: this.onUpload, onShowNearest: this.onShowNearest, onAskEverywhere: (it) => this.#askEverywhere(it) });
  }

  #appendTurn(turn) {
    if (!this.#turns.length) this.thread.replaceChildren();
    this.#turns.push(turn);
    this.long.show(this.#turns);
    turn.node.classList.add("asked");
    this.thread.append(turn.node);
    this.#watchLastAnswer();
    turn.node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  #setRunning(run) {
    const hadFocus = document.activeElement === byId("send") || document.activeElement === byId("stop");
    this.#running = run;
    byId("send").hidden = Boolean(run);
    byId("stop").hidden = !run;
    if (hadFocus) this.questionBox.focus({ preventScroll: true });
  }

  /** An answer that is being written is finished in the background. */
  #discardTurns() {
    this.long.show([]);
    if (this.#running) this.#left.set(this.#running.conversation, this.#running);
    this.#setRunning(null);
    this.#turns = [];
    this.#opening = 0;
    clearAnnouncements();
  }

  #setConversation(id) {
    this.#conversation = id;
    this.scope.openConversation(id);
    this.onConversation(id);
  }

  /** A conversation that started in a notebook or a note keeps searching there. */
  async #restoreScope(scope) {
    const conversation = this.#conversation;
    const id = scope?.[`${scope.kind}_id`];
    if (!["notebook", "note"].includes(scope?.kind) || !id) return;
    try {
      const { title } = await this.api.get(`/${scope.kind}s/${id}`);
      if (this.#conversation === conversation) this.scope.setOrigin({ kind: scope.kind, id, name: title });
    } catch {
      // It was deleted, so the conversation searches the whole library.
    }
  }

  async #loadMessages(id) {
    const messages = [];
    let cursor = null;
    do {
      const page = await this.api.get(`/conversations/${id}/messages`, { limit: MESSAGES_PER_PAGE, cursor });
      messages.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    return messages;
  }

  #drawHistory(messages) {
    const run = this.#left.get(this.#conversation);
    const asked = stackVersions(groupIntoTurns(messages));
    if (run && !asked.at(-1)?.at(-1).answer) asked.pop();
    this.#turns = asked.map((versions, at) => this.#drawVersions(versions, at === asked.length - 1));
    if (run) this.#resume(run);
    if (!this.#turns.length) return this.#drawWelcome();
    this.long.show(this.#turns);
    this.thread.replaceChildren(...this.#turns.map((turn) => turn.node));
    this.onDrawn();
    this.#watchLastAnswer();
    this.#turns.at(-1).node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  /** The newest of the versions of a question; those before it that were never answered are left out. */
  #drawVersions(versions, isLast) {
    const turns = versions.filter(({ answer }, at) => answer || at === versions.length - 1).map(({ question, questionId, answer }) => {
      const mayAsk = isLast && question !== null;
      const turn = this.#createTurn({
        question, questionId, onRetry: mayAsk ? (it) => this.#retry(it) : null, onReplace: mayAsk ? (it, text) => this.#replace(it, text) : null,
      });
      turn.finish(answer ?? { answer: "", status: "failed" });
      return turn;
    });
    turns.at(-1).joinVersions(turns);
    return turns.at(-1);
  }

  /** Show an answer again that was left while it was written. */
  #resume(run) {
    this.#left.delete(run.conversation);
    this.#turns.push(run.turn);
    this.#setRunning(run);
  }

  #drawWelcome() {
    this.#unwatchLastAnswer();
    const { questions } = this.#starters;
    this.thread.replaceChildren(welcome(this.#library, { questions, onAsk: (question) => this.ask(question), onUpload: this.onUpload, onSample: () => this.#trySample() }));
    if (this.#library === "ready" && this.#starters.lang !== language()) this.#loadStarters();
  }

  /** Questions that the library answers. Nobody asked for them, so their failure is not shown. */
  async #loadStarters() {
    this.#starters = { lang: language(), questions: [] };
    const { items } = await this.api.get("/search/suggestions", { lang: language() }).catch(() => ({ items: [] }));
    this.#starters.questions = items;
    if (items.length && this.#isWelcoming && !this.#conversation) this.#drawWelcome();
  }

  /** Show the "Latest" button while the end of the last answer is below the visible area. */
  #watchLastAnswer() {
    this.#unwatchLastAnswer();
    this.observer = new IntersectionObserver(([entry]) => {
      byId("jump-latest").hidden = entry.isIntersecting || entry.boundingClientRect.top < entry.rootBounds.bottom;
    }, { root: this.messages, rootMargin: "0px 0px 40px 0px" });
    this.observer.observe(this.#turns.at(-1).end);
  }

  #unwatchLastAnswer() {
    this.observer?.disconnect();
    byId("jump-latest").hidden = true;
  }

  #write(question) {
    this.questionBox.value = question;
    this.draft.keep();
    this.#fitQuestionBox();
  }

  #fitQuestionBox() {
    this.questionBox.style.height = "auto";
    this.questionBox.style.height = `${this.questionBox.scrollHeight}px`;
  }

  #listen() {
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(this.questionBox.value);
    });
    this.questionBox.addEventListener("input", () => this.#fitQuestionBox());
    this.questionBox.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.ask(this.questionBox.value);
    });
    byId("stop").addEventListener("click", () => this.#running?.stop.abort());
    byId("jump-latest").addEventListener("click", () => this.#turns.at(-1)?.end.scrollIntoView({ block: "end" }));
    onLanguage(() => {
      for (const turn of this.#turns) turn.redraw();
      if (this.#isWelcoming) this.#drawWelcome();
    });
  }
}

const goneBox = () => el("div", { class: "fault-box plain", role: "alert", "data-testid": "conversation-gone" }, icon("alert"), el("p", {}, t("link.conversationGone")));

/** Pair each question with the answer that follows it; either may be missing. */
function groupIntoTurns(messages) {
  const turns = [];
  for (const message of messages) {
    if (message.role === "user") turns.push({ question: message.content, questionId: message.id, replaces: message.replaces, answer: null });
    else {
      if (!turns.length || turns.at(-1).answer) turns.push({ question: null, questionId: null, replaces: null, answer: null });
      turns.at(-1).answer = { ...message, answer: message.content, message_id: message.id };
    }
  }
  return turns;
}

/** Lists of turns, each with the versions of one question, oldest first, in the place of the first. */
function stackVersions(turns) {
  const stacks = [];
  const stackOf = new Map();
  for (const turn of turns) {
    const stack = stackOf.get(turn.replaces) ?? [];
    if (!stack.length) stacks.push(stack);
    stack.push(turn);
    if (turn.questionId) stackOf.set(turn.questionId, stack);
  }
  return stacks;
}
