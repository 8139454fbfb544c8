// Announces a streaming answer to screen readers, one whole sentence at a time.

import { announce } from "../../shared/notices.js";
import { renderMarkdown } from "../markdown.js";

const SENTENCE_END = /[.!?…:]["»”)]?\s+|\n+/g;
const LONGEST_END = 8;

export class Speech {
  #pending = "";

  /** Only the new text is searched for the end of a sentence: a line may be long and its pieces short. */
  add(piece) {
    const from = Math.max(0, this.#pending.length - LONGEST_END);
    this.#pending += piece;
    let said = 0;
    for (const end of this.#pending.slice(from).matchAll(SENTENCE_END)) said = from + end.index + end[0].length;
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
