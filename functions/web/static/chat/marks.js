// Finds citation marks like `[1]` and `[1, 2]` in the text of an answer.

const MARK = /\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]/g;

/** Split text into strings and `{numbers: [n]}` marks. Brackets with a number outside `known` stay text. */
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
