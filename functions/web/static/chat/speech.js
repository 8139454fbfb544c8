// Announces a streaming answer to screen readers, one whole sentence at a time.

import { announce } from "../shared/notices.js";
import { renderMarkdown } from "./markdown.js";

const SENTENCE_END = /[.!?…:]["»”)]?\s+|\n+/g;

export class Speech {
  #pending = "";

  add(piece) {
    this.#pending += piece;
    let said = 0;
    for (const end of this.#pending.matchAll(SENTENCE_END)) said = end.index + end[0].length;
    if (said) this.#announce(this.#pending.slice(0, said));
    this.#pending = this.#pending.slice(said);
  }

  finish(words) {
    this.#announce(this.#pending);
    this.#pending = "";
    if (words) announce(words);
  }

  #announce(text) {
    const words = renderMarkdown(text).textContent.replaceAll("|", " ").trim();
    if (/[\p{L}\p{N}]/u.test(words)) announce(words);
  }
}
