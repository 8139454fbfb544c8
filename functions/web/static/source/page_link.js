// Links to a passage, as used in notes made from answers: `#d=<document>&page=<n>&start=<s>&end=<e>`, or `#n=` for a note.

import { cutAt } from "./offsets.js";

const LINK = /^#([dn])=([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?:&page=(\d{1,7}))?(?:&start=(\d{1,9})&end=(\d{1,9}))?$/i;

/**
 * The target of a link as `{source, document_id, page_start, start_offset, end_offset}`, or null if it is not such a link.
 * Offsets count code points and default to 0.
 */
export function readLink(hash) {
  const [, kind, id, page = 1, start = 0, end = 0] = LINK.exec(hash) ?? [];
  if (!kind) return null;
  return { source: kind.toLowerCase() === "d" ? "document" : "note", document_id: id, page_start: Math.max(1, page), start_offset: +start, end_offset: +end };
}

/** The target as a citation for the source panel, quoting the current text; its `state` is "deleted" if it no longer exists. */
export async function resolveLink(api, link) {
  const address = `/${link.source}s/${link.document_id}`;
  try {
    const [found, quote] = await Promise.all([api.get(address), readQuote(api, address, link)]);
    if (found.trashed_at) return { ...link, state: "deleted" };
    return {
      ...link, quote, page_end: link.page_start, file_type: found.file_type ?? "md",
      file_name: link.source === "note" ? found.title : found.file_name, state: found.superseded_by ? "superseded" : "current", superseded_by: found.superseded_by,
    };
  } catch (error) {
    if (error.status !== 404) throw error;
    return { ...link, state: "deleted" };
  }
}

/** A document from its first page, as a source that quotes nothing. */
export const documentAsSource = ({ id, file_name, file_type, page_count }) => ({
  source: "document", document_id: id, file_name, file_type, page_start: 1, page_end: page_count ?? 1, start_offset: 0, end_offset: 0, state: "current", isReading: true,
});

async function readQuote(api, address, { page_start: page, start_offset: start, end_offset: end }) {
  if (end <= start) return "";
  try {
    const { pages } = await api.get(`${address}/text`, { page });
    return cutAt(pages[0]?.text ?? "", start, end)[1];
  } catch (error) {
    if (error.status !== 404) throw error;
    return ""; // the panel reports the missing page
  }
}
