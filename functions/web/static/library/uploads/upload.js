// Uploads one file: announces it to the API, sends its bytes to storage, finalizes it.

import { ApiError } from "../../shared/http.js";

const TYPES = {
  pdf: "application/pdf",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  txt: "text/plain",
  md: "text/markdown",
  markdown: "text/markdown",
};
/** The `accept` attribute of file inputs. */
export const ACCEPTED = `${Object.keys(TYPES).map((ending) => `.${ending}`)},application/pdf,text/plain,text/markdown`;

const MAX_HASHED_BYTES = 128 * 1024 * 1024;

/**
 * Upload to `destination`, `{notebook_id?, note_id?}`. `onStep({state, share?, document?})` is called with `checking`, then
 * `sending` and the share of bytes sent (0 to 1).
 * Resolves to `{document, duplicate}`; rejects with an ApiError, or an AbortError once `signal` fires.
 */
export async function sendFile(api, file, { destination, onStep, signal }) {
  onStep({ state: "checking" });
  const announced = await api.post("/documents", {
    file_name: file.name,
    size: file.size,
    mime_type: mimeType(file),
    sha256: await sha256(file),
    ...destination,
  }, { signal });
  if (announced.duplicate || !announced.upload) return { document: announced.document, duplicate: true };
  onStep({ state: "sending", share: 0, document: announced.document });
  await putBytes(announced.upload, file, { signal, onShare: (share) => onStep({ state: "sending", share }) });
  onStep({ state: "sending", share: 1 });
  const document = await api.post(`/documents/${announced.document.id}/finalize`, undefined, { signal });
  return { document, duplicate: document.id !== announced.document.id };
}

/** Browsers often have no type for Markdown, and some have unusual ones for text files. */
function mimeType(file) {
  return TYPES[file.name.split(".").pop().toLowerCase()] ?? (file.type || "application/octet-stream");
}

/** The digest lets the server recognize a duplicate before it is sent; undefined where it cannot be computed. */
async function sha256(file) {
  if (!globalThis.crypto?.subtle || file.size > MAX_HASHED_BYTES) return undefined;
  try {
    const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  } catch {
    throw new ApiError({ code: "unreadable_file" });
  }
}

/** fetch reports no upload progress; XMLHttpRequest does. */
function putBytes({ url, method = "PUT", headers = {} }, file, { onShare, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onShare(event.loaded / event.total);
    request.onload = () => (request.status < 300 ? resolve() : reject(storageError(request)));
    request.onerror = () => reject(new ApiError());
    request.onabort = () => reject(new DOMException("The upload was stopped.", "AbortError"));
    request.onloadend = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort);
    request.send(file);
  });
}

/** The codes of ours for what storage hosts refuse; Supabase answers nearly all of it with status 400, and says the real one in the body. */
const REFUSALS = { 400: "link_expired", 403: "link_expired", 409: "link_used", 413: "file_too_large", 415: "file_type_refused" };

function storageError(request) {
  let body = {};
  try {
    body = JSON.parse(request.responseText);
  } catch {
    // Some storage hosts answer in XML or plain text, so only the status is known.
  }
  if (body.detail) return new ApiError({ ...body, status: request.status }); // a laptop's storage, which says it in words
  const status = Number(body.statusCode) || request.status;
  return new ApiError({ status, code: REFUSALS[status] ?? "storage_refused" });
}
