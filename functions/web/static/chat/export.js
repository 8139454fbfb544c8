// The conversation as a Markdown file of the browser's downloads.

import { el } from "../shared/dom.js";
import { language } from "../shared/i18n.js";
import { inWords, toast } from "../shared/notices.js";

const NAME = /filename\*=UTF-8''([^;]+)/i;
const KEPT_FOR = 60000;

export async function exportConversation(api, id) {
  try {
    const response = await api.call("GET", `/conversations/${id}/export`, { query: { lang: language() }, accept: "text/markdown" });
    save(await response.blob(), nameIn(response.headers.get("content-disposition") ?? ""));
  } catch (error) {
    toast(inWords(error), { kind: "bad" });
  }
}

/** The bytes came with a token, so there is no address to send the browser to. */
function save(blob, name) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_FOR);
}

function nameIn(disposition) {
  try {
    return decodeURIComponent(NAME.exec(disposition)[1]);
  } catch {
    return "conversation.md";
  }
}
