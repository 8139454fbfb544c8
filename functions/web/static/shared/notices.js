// Short words to the person: toasts to see, a live region to hear.

import { byId, el } from "./dom.js";
import { t, known } from "./i18n.js";

const SHOWN_FOR = 6000;

/** A line at the edge of the screen that goes away by itself; it is read aloud too. */
export function toast(text, { kind = "plain", testid = "toast" } = {}) {
  const node = el("p", { class: `toast ${kind}`, "data-testid": testid }, text);
  byId("toasts").append(node);
  raise(byId("toasts"));
  const leave = () => node.remove();
  node.addEventListener("click", leave);
  setTimeout(leave, SHOWN_FOR);
}

/** Above the dialog that is open, if one is. */
function raise(toasts) {
  if (!toasts.showPopover) return;
  toasts.popover = "manual";
  if (toasts.matches(":popover-open")) toasts.hidePopover();
  toasts.showPopover();
}

/** Add a line to what screen readers hear of the conversation. */
export function speak(text) {
  const region = byId("spoken");
  while (region.childElementCount > 40) region.firstElementChild.remove();
  region.append(el("p", {}, text));
}

export const silence = () => byId("spoken").replaceChildren();

/** An error in words: ours for a broken connection or a code we can translate, else the server's own. */
export function inWords(error) {
  if (error.code === "network") return t("error.network");
  const ours = error.code ? known(`error.${error.code}`) : null;
  return ours ?? (error.detail || error.message || t("error.unknown"));
}
