// Draws what is near the visible part of a long list: the rest are empty nodes of the same height, so a list of any length stays light.

export class Viewport {
  #parts = new WeakMap();

  /** `scroller` is the node that scrolls the list; `guess` is the height of a part that was never drawn, and `near` how far outside parts are drawn, in pixels. */
  constructor({ scroller, guess, near = 400 }) {
    this.guess = guess;
    this.observer = new IntersectionObserver((entries) => this.#follow(entries), { root: scroller, rootMargin: `${near}px 0px` });
  }

  /** Keep the contents of `node` in step with its place: `part` has `draw()`, which fills the node, and `clear()`, which empties it. */
  add(node, part) {
    this.#parts.set(node, part);
    if (!node.hasChildNodes()) node.style.height = `${this.guess}px`;
    this.observer.observe(node);
  }

  /** Draw a part now, wherever it is. */
  draw(node) {
    if (node.hasChildNodes()) return;
    node.style.height = "";
    this.#parts.get(node).draw();
  }

  remove(node) {
    this.observer.unobserve(node);
    this.#parts.delete(node);
  }

  #follow(entries) {
    for (const { target, isIntersecting, boundingClientRect } of entries) {
      if (!this.#parts.has(target)) continue;
      if (isIntersecting) this.draw(target);
      else if (boundingClientRect.height && target.hasChildNodes() && !target.contains(document.activeElement)) this.#clear(target, boundingClientRect.height);
    }
  }

  #clear(node, height) {
    node.style.height = `${height}px`;
    this.#parts.get(node).clear();
  }
}

/** A part for `Viewport` that takes the children of a node out of the page and puts them back, so that whoever holds them can change them meanwhile. */
export function parked(node) {
  const kept = document.createDocumentFragment();
  return { draw: () => node.append(kept), clear: () => kept.append(...node.childNodes), find: (selector) => [...node.querySelectorAll(selector), ...kept.querySelectorAll(selector)] };
}
