// Downloads the conversation as a Markdown file.

import { el } from "../shared/dom.js";
import { language, t } from "../language/i18n.js";
import { report } from "../shared/notices.js";

const FILE_NAME = /filename\*=UTF-8''([^;]+)/i;
const URL_LIFETIME = 60000;

export async function exportConversation(api, id) {
  try {
    const response = await api.call("GET", `/conversations/${id}/export`, { query: { lang: language() }, accept: "text/markdown" });
    downloadBlob(await response.blob(), fileNameIn(response.headers.get("content-disposition") ?? ""));
  } catch (error) {
    report(error, t("failed.export"), () => exportConversation(api, id));
  }
}

/** The request needs a token, so the browser cannot download from the URL itself. */
function downloadBlob(blob, name) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), URL_LIFETIME);
}

function fileNameIn(disposition) {
  try {
    return decodeURIComponent(FILE_NAME.exec(disposition)[1]);
  } catch {
    return "conversation.md";
  }
}
