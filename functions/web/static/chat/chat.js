// The conversation: asking, the answer as it streams, stopping, and what went wrong.

import { byId, el, setText } from "../shared/dom.js";
import { ApiError } from "../shared/http.js";
import { onLanguage, t } from "../shared/i18n.js";
import { inWords, silence, speak } from "../shared/notices.js";
import { readEvents } from "../shared/sse.js";
import { Turn } from "./answer.js";
import { Speech } from "./speech.js";
import { libraryState, welcome } from "./welcome.js";

const MESSAGES_AT_ONCE = 100;

export class Chat {
  #conversation = null;
  #turns = [];
  #running = null;
  #opening = 0;
  #library = "loading";

  /**
   * `onConversation(id)` when another becomes current, `onAnswered()` when the list of conversations has news;
   * `onKeep(address)` resolves to the note that was made there of an answer, or to null.
   */
  constructor({ api, scope, onCite, onConversation, onAnswered, onUpload, onKeep, onOpenNote }) {
    Object.assign(this, { api, scope, onCite, onConversation, onAnswered, onUpload, onKeep, onOpenNote });
    this.thread = byId("thread");
    this.messages = byId("messages");
    this.question = byId("question");
    this.extractive = false;
    this.address = "/chat";
    this.#listen();
  }

  get conversation() {
    return this.#conversation;
  }

  /** The library's size decides what an empty conversation says. */
  setCounts(counts) {
    const state = libraryState(counts);
    if (state === this.#library) return;
    this.#library = state;
    if (!this.#turns.length && !this.#opening) this.#drawWelcome();
  }

  setTitle(title) {
    const heading = byId("conversation-title");
    const shown = this.#conversation ? title : "";
    heading.classList.toggle("visually-hidden", !shown);
    setText(heading, shown || "Ibid");
    document.title = shown ? `${shown} · Ibid` : "Ibid";
  }

  /** Start afresh. */
  clear() {
    this.#leave();
    this.#become(null);
    this.#drawWelcome();
    this.question.focus({ preventScroll: true });
  }

  /** Show an earlier conversation from its first message to its last. */
  async open(id) {
    this.#leave();
    this.#become(id);
    const opening = (this.#opening = Date.now() + Math.random());
    this.#forgetEnd();
    this.thread.replaceChildren(el("p", { class: "hint loading", role: "status" }, t("loading")));
    try {
      const messages = await this.#allMessages(id);
      if (this.#opening !== opening) return;
      this.#opening = 0;
      this.#drawHistory(messages);
      this.#bind(messages.find(({ role }) => role === "user")?.scope);
    } catch (error) {
      if (this.#opening !== opening) return;
      this.#opening = 0;
      if (error.status === 404) return this.clear();
      this.thread.replaceChildren(el("p", { class: "fault", role: "alert" }, inWords(error)));
    }
  }

  async ask(query) {
    if (!query.trim() || this.#running) return;
    this.#opening = 0;
    const turn = this.#newTurn({ question: query, verbatim: this.extractive, onRetry: (it) => this.#retry(it) });
    const run = { turn, stop: new AbortController(), speech: new Speech() };
    this.#show(turn);
    this.question.value = "";
    this.#fit();
    this.#setRunning(run);
    silence();
    speak(t("chat.searching"));
    try {
      await this.#stream(query, run);
    } catch (error) {
      this.#failed(error, query, run);
    }
    if (this.#running === run) this.#setRunning(null);
  }

  async #stream(query, run) {
    const conversation = this.#conversation ?? undefined;
    await this.scope.settled;
    const body = { query, stream: true, conversation_id: conversation, ...this.scope.query };
    run.place = this.scope.place;
    run.turn.once = this.scope.once;
    if (this.#running === run) this.scope.once = false;
    const response = await this.api.call("POST", this.address, { body, signal: run.stop.signal, accept: "text/event-stream" });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return this.#finish(await response.json(), run);
    for await (const { data } of readEvents(response.body)) {
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error);
      if (event.meta?.conversation_id) this.#join(event.meta.conversation_id, run);
      if (event.text) {
        run.turn.stream(event.text);
        run.speech.take(event.text);
      }
      if (event.done) return this.#finish(event, run);
    }
    throw new ApiError({ code: "cut_off" });
  }

  #join(id, run) {
    if (this.#running !== run || this.#conversation === id) return;
    this.#conversation = id;
    this.scope.begin(id, run.place);
    this.onConversation(id);
  }

  #finish(result, run) {
    this.#join(result.conversation_id, run);
    run.turn.finish(result);
    run.speech.end(t("chat.complete", { n: result.sources?.length ?? 0 }));
    this.onAnswered();
  }

  #failed(error, query, run) {
    if (error.name === "AbortError") {
      run.turn.stop();
      run.speech.end(t("chat.stopped"));
      this.onAnswered();
      return;
    }
    const shown = error instanceof ApiError ? error : new ApiError({ code: error instanceof SyntaxError ? "garbled" : "network" });
    run.turn.fail(shown);
    if (this.#running === run && !this.question.value) {
      this.question.value = query;
      if (run.turn.once) this.scope.once = true;
      this.#fit();
    }
  }

  /** Ask the same again in place of the turn that failed. */
  #retry(turn) {
    if (this.#running) return;
    this.#turns = this.#turns.filter((other) => other !== turn);
    turn.node.remove();
    if (this.question.value === turn.question) this.question.value = "";
    if (turn.once) this.scope.once = true;
    this.ask(turn.question);
    this.question.focus({ preventScroll: true });
  }

  #newTurn(fields) {
    const onKeep = (id) => this.onKeep(`/conversations/${this.#conversation}/messages/${id}/note`);
    return new Turn({ ...fields, onKeep, onCite: this.onCite, onOpenNote: this.onOpenNote });
  }

  #show(turn) {
    if (!this.#turns.length) this.thread.replaceChildren();
    this.#turns.push(turn);
    turn.node.classList.add("asked");
    this.thread.append(turn.node);
    this.#watchEnd();
    turn.node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  #setRunning(run) {
    const hadFocus = document.activeElement === byId("send") || document.activeElement === byId("stop");
    this.#running = run;
    byId("send").hidden = Boolean(run);
    byId("stop").hidden = !run;
    if (hadFocus) this.question.focus({ preventScroll: true });
  }

  #leave() {
    const run = this.#running;
    this.#setRunning(null);
    run?.stop.abort();
    this.#turns = [];
    this.#opening = 0;
    silence();
  }

  #become(id) {
    this.#conversation = id;
    this.scope.enter(id);
    this.onConversation(id);
  }

  /** A conversation that began in a notebook or a note goes on there. */
  async #bind(scope) {
    const conversation = this.#conversation;
    const id = scope?.[`${scope.kind}_id`];
    if (!["notebook", "note"].includes(scope?.kind) || !id) return;
    try {
      const { title } = await this.api.get(`/${scope.kind}s/${id}`);
      if (this.#conversation === conversation) this.scope.bind({ kind: scope.kind, id, name: title });
    } catch {
      // It is gone: then the conversation goes on in the whole library.
    }
  }

  async #allMessages(id) {
    const messages = [];
    let cursor = null;
    do {
      const page = await this.api.get(`/conversations/${id}/messages`, { limit: MESSAGES_AT_ONCE, cursor });
      messages.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    return messages;
  }

  #drawHistory(messages) {
    this.#turns = pairs(messages).map(({ question, answer }) => {
      const turn = this.#newTurn({ question });
      turn.finish(answer ?? { answer: "", status: "failed" });
      return turn;
    });
    if (!this.#turns.length) return this.#drawWelcome();
    this.thread.replaceChildren(...this.#turns.map((turn) => turn.node));
    this.#watchEnd();
    this.#turns.at(-1).node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  #drawWelcome() {
    this.#forgetEnd();
    this.thread.replaceChildren(welcome(this.#library, { onUpload: this.onUpload }));
  }

  /** A button leads to the end of the last answer whenever that is out of sight. */
  #watchEnd() {
    this.#forgetEnd();
    this.observer = new IntersectionObserver(([entry]) => {
      byId("jump-latest").hidden = entry.isIntersecting || entry.boundingClientRect.top < entry.rootBounds.bottom;
    }, { root: this.messages, rootMargin: "0px 0px 40px 0px" });
    this.observer.observe(this.#turns.at(-1).end);
  }

  #forgetEnd() {
    this.observer?.disconnect();
    byId("jump-latest").hidden = true;
  }

  #fit() {
    this.question.style.height = "auto";
    this.question.style.height = `${this.question.scrollHeight}px`;
  }

  #listen() {
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(this.question.value);
    });
    this.question.addEventListener("input", () => this.#fit());
    this.question.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.ask(this.question.value);
    });
    byId("stop").addEventListener("click", () => this.#running?.stop.abort());
    byId("jump-latest").addEventListener("click", () => this.#turns.at(-1)?.end.scrollIntoView({ block: "end" }));
    onLanguage(() => {
      for (const turn of this.#turns) turn.redraw();
      if (!this.#turns.length && !this.#opening) this.#drawWelcome();
    });
  }
}

/** Messages as turns: a question with the answer that follows it, either of which may be missing. */
function pairs(messages) {
  const turns = [];
  for (const message of messages) {
    if (message.role === "user") turns.push({ question: message.content, answer: null });
    else {
      if (!turns.length || turns.at(-1).answer) turns.push({ question: null, answer: null });
      turns.at(-1).answer = { ...message, answer: message.content, message_id: message.id };
    }
  }
  return turns;
}
