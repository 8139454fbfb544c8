// Citation marks: `[1]`, `[1, 2]` in an answer's text.

const MARK = /\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]/g;

/** Split text into strings and `{numbers: [n]}` marks; only numbers in `known` count, anything else stays text. */
export function splitMarks(text, known) {
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(MARK)) {
    const numbers = match[1].split(",").map(Number);
    if (!numbers.every((number) => known.has(number))) continue;
    if (match.index > from) pieces.push(text.slice(from, match.index));
    pieces.push({ numbers });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}
