// Keeps a long conversation light: turns far from what is visible are taken out of the page until they are scrolled near.

import { parked, Viewport } from "./viewport.js";

const LONG = 20; // turns: below that, the search of the browser finds every word
const TURN_HEIGHT = 420;
const NEAR = 1500;

export class LongThread {
  #parts = new Map();
  turns = [];

  constructor(scroller) {
    this.scroller = scroller;
  }

  /** The turns that are shown now, in their order. The last one always stays in the page, because it may still be written. */
  show(turns) {
    this.turns = turns;
    if (turns.length <= LONG) return this.#stop();
    this.viewport ??= new Viewport({ scroller: this.scroller, guess: TURN_HEIGHT, near: NEAR });
    for (const { node } of turns.slice(0, -1)) if (!this.#parts.has(node)) this.#add(node);
    return undefined;
  }

  /** The marks of all turns, in the page or not. */
  findMarks(selector) {
    return this.turns.flatMap(({ node }) => this.#parts.get(node)?.find(selector) ?? [...node.querySelectorAll(selector)]);
  }

  /** Bring what is near the mark back into the page. */
  reveal(mark) {
    for (const [node, part] of this.#parts) if (part.find("*").includes(mark)) this.viewport.draw(node);
  }

  #add(node) {
    const part = parked(node);
    this.#parts.set(node, part);
    if (!node.isConnected) part.clear(); // an earlier turn that was never shown
    this.viewport.add(node, part);
  }

  #stop() {
    for (const node of this.#parts.keys()) {
      this.viewport.draw(node);
      this.viewport.remove(node);
    }
    this.#parts.clear();
  }
}
