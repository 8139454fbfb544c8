// Writes a plain PDF: pages of lines in Helvetica, those that begin with "# " in bold.

const WIN_ANSI = { "€": "\x80", "’": "\x92", "–": "\x96", "œ": "\x9c", "Œ": "\x8c" };
const FONT = (name) => `<</Type/Font/Subtype/Type1/BaseFont/${name}/Encoding/WinAnsiEncoding>>`;

/** The bytes of a PDF; `pages` are arrays of lines whose characters Windows-1252 has. */
export function writePdf(title, pages) {
  const objects = ["<</Type/Catalog/Pages 2 0 R>>", "", FONT("Helvetica"), FONT("Helvetica-Bold"), `<</Title(${escapeText(title)})>>`];
  const kids = pages.map((lines) => {
    const content = writeLines(lines);
    objects.push(`<</Length ${content.length}>>stream\n${content}\nendstream`);
    objects.push(`<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents ${objects.length} 0 R/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>`);
    return `${objects.length} 0 R`;
  });
  objects[1] = `<</Type/Pages/Kids[${kids.join(" ")}]/Count ${kids.length}>>`;
  return Uint8Array.from(writeObjects(objects), (character) => character.charCodeAt(0));
}

function writeObjects(objects) {
  let text = "%PDF-1.7\n";
  const offsets = objects.map((object, at) => {
    const offset = text.length;
    text += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return String(offset).padStart(10, "0");
  });
  const table = offsets.map((offset) => `${offset} 00000 n \n`).join("");
  return `${text}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer<</Size ${objects.length + 1}/Root 1 0 R/Info 5 0 R>>\nstartxref\n${text.length}\n%%EOF\n`;
}

const writeLines = (lines) => `BT 72 760 Td 17 TL\n${lines.map(writeLine).join("\n")}\nET`;

const writeLine = (line) => (line.startsWith("# ") ? `/F2 12 Tf (${escapeText(line.slice(2))}) Tj T*` : `/F1 11 Tf (${escapeText(line)}) Tj T*`);

const escapeText = (text) => text.replace(/[\\()]/g, "\\$&").replace(/[€’–œŒ]/g, (character) => WIN_ANSI[character]);
