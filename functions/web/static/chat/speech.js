// A streaming answer for screen readers: whole sentences, each said once.

import { speak } from "../shared/notices.js";
import { renderMarkdown } from "./markdown.js";

const SENTENCE_END = /[.!?…:]["»”)]?\s+|\n+/g;

export class Speech {
  #pending = "";

  take(piece) {
    this.#pending += piece;
    let said = 0;
    for (const end of this.#pending.matchAll(SENTENCE_END)) said = end.index + end[0].length;
    if (said) this.#say(this.#pending.slice(0, said));
    this.#pending = this.#pending.slice(said);
  }

  end(words) {
    this.#say(this.#pending);
    this.#pending = "";
    if (words) speak(words);
  }

  #say(text) {
    const words = renderMarkdown(text).textContent.replaceAll("|", " ").trim();
    if (/[\p{L}\p{N}]/u.test(words)) speak(words);
  }
}
