// The status of a document or a note as a badge, and the reason for a failed one.

import { setText } from "./dom.js";
import { textOrNull, t } from "../language/i18n.js";

/** Fill the badge with the status in words; the style sheet colours it by `data-status`. */
export function drawBadge(node, { status, chunk_count: chunks }) {
  node.dataset.status = status;
  setText(node, status === "indexed" ? t("status.indexed", { n: chunks ?? 0 }) : t(`status.${status}`));
}

/** Why indexing failed: the translated text of the error code where there is one, else the server's message. */
export function failureText({ error_code: code, error }) {
  const translated = code ? textOrNull(`failure.${code}`) ?? textOrNull(`error.${code}`) : null;
  return translated ?? (error || t("error.unknown"));
}
