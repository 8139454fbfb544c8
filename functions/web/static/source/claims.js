// Tints the claims of an answer whose source is open, from the mark of the claim before to the mark of this one.

import { placeKey } from "../chat/citations.js";

const BLOCKS = "p, li, td, th, h3, blockquote, pre";

/** Tint the claims that cite this place, in the answer of `opener` or wherever they are shown. */
export function tintClaims(citation, opener) {
  const root = opener?.closest?.(".answer") ?? document.getElementById("thread");
  const marks = [...root.querySelectorAll(".answer-text .citation")].filter((mark) => mark.dataset.place === placeKey(citation));
  for (const mark of marks) mark.setAttribute("data-open", "");
  if (globalThis.CSS?.highlights) CSS.highlights.set("claim", new Highlight(...marks.map(claimOf)));
}

export function clearClaims() {
  for (const node of document.querySelectorAll("[data-open]")) node.removeAttribute("data-open");
  globalThis.CSS?.highlights?.delete("claim");
}

/** The text before a mark in its block, up to the mark of the claim before; a mark alone in a block belongs to the block above. */
function claimOf(mark) {
  const own = mark.closest(BLOCKS) ?? mark.parentElement;
  const block = hasWords(rangeOf(own, mark)) ? own : own.previousElementSibling ?? own;
  let range = rangeOf(block, block === own ? mark : null);
  for (const before of block.querySelectorAll(".citation")) {
    if (before === mark) break;
    const rest = rangeOf(block, block === own ? mark : null);
    rest.setStartAfter(before);
    if (hasWords(rest)) range = rest;
  }
  return range;
}

function rangeOf(block, mark) {
  const range = document.createRange();
  range.setStart(block, 0);
  if (mark) range.setEndBefore(mark);
  else range.setEndAfter(block.lastChild ?? block);
  return range;
}

/** Whether there is more than marks and stops between two marks. */
const hasWords = (range) => /\p{L}/u.test(range.toString());
