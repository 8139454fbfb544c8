// Offsets from the server count characters (code points); JavaScript strings count UTF-16 units.

/** `[before, passage, after]` of a text cut at two code point offsets; offsets outside the text are clamped. */
export function cutAt(text, start, end) {
  const from = unitIndex(text, start, 0, 0);
  const to = unitIndex(text, Math.max(start, end), from, start);
  return [text.slice(0, from), text.slice(from, to), text.slice(to)];
}

function unitIndex(text, offset, units, points) {
  while (points < offset && units < text.length) {
    units += text.codePointAt(units) > 0xffff ? 2 : 1;
    points += 1;
  }
  return units;
}
