// Messages to the user: toasts on the screen, and a live region for screen readers.

import { byId, el } from "./dom.js";
import { icon } from "./icons.js";
import { t, textOrNull } from "../language/i18n.js";
import { loadPart } from "../loading/parts.js";

const SHOWN_FOR = 6000;
const SHOWN_WITH_ACTION = 12000;

/** A message at the edge of the screen that disappears by itself; screen readers announce it too. `action` is `{words, click}`. */
export function toast(text, { kind = "plain", testid = "toast", action = null } = {}) {
  const act = () => (remove(), action.click());
  const button = action ? el("button", { type: "button", class: "button small", "data-testid": `${testid}-action`, on: { click: act } }, action.words) : null;
  const node = el("div", { class: `toast ${kind}`, "data-testid": testid }, el("p", {}, text), button);
  byId("toasts").append(node);
  raiseAboveDialog(byId("toasts"));
  const remove = () => node.remove();
  node.addEventListener("click", remove);
  setTimeout(remove, action ? SHOWN_WITH_ACTION : SHOWN_FOR);
}

/**
 * Say what failed, why, and under which id the server's log has it; the message stays until it is dismissed. `what` is a text,
 * `onRetry` makes a second attempt.
 */
export function report(error, what, onRetry = null) {
  for (const node of document.querySelectorAll(".toast.bad")) if (node.dataset.what === what) node.remove();
  const remove = () => node.remove();
  const close = el("button", { type: "button", class: "toast-close", "aria-label": t("close"), on: { click: remove } }, icon("close"));
  const node = el("div", { class: "toast bad", "data-testid": "toast", "data-what": what }, el("div", {}, faultWords(error, what), retryButton(onRetry, remove)), close);
  byId("toasts").append(node);
  raiseAboveDialog(byId("toasts"));
}

/** The same as a part of the page. */
export function faultBox(error, { what = "", onRetry = null, testid = "fault", retryTestid = "fault-retry" } = {}) {
  return el("div", { class: "fault-box", role: "alert", "data-testid": testid }, icon("alert"),
    el("div", {}, faultWords(error, what), retryButton(onRetry, () => {}, retryTestid)));
}

function faultWords(error, what) {
  const id = error.requestId ? el("small", { class: "request-id", "data-testid": "request-id" }, t("failed.reference", { id: error.requestId })) : null;
  return [el("p", {}, [what, errorText(error)].filter(Boolean).join(" ")), id];
}

function retryButton(onRetry, then, testid = "fault-retry") {
  if (!onRetry) return null;
  const retry = () => {
    then();
    onRetry();
  };
  return el("button", { type: "button", class: "button small", "data-testid": testid, on: { click: retry } }, icon("retry"), t("chat.retry"));
}

/** Show the toasts above an open dialog. */
function raiseAboveDialog(toasts) {
  if (!toasts.showPopover) return;
  toasts.popover = "manual";
  if (toasts.matches(":popover-open")) toasts.hidePopover();
  toasts.showPopover();
}

/** Let screen readers announce a line of the conversation. */
export function announce(text) {
  const region = byId("spoken");
  while (region.childElementCount > 40) region.firstElementChild.remove();
  region.append(el("p", {}, text));
}

export const clearAnnouncements = () => byId("spoken").replaceChildren();

/** The message for an error: ours for a lost connection or a translated code, else the server's. */
export function errorText(error) {
  if (error.code === "network") return t("error.network");
  const ours = error.code ? textOrNull(`error.${error.code}`) : null;
  return ours ?? (error.detail || error.message || t("error.unknown"));
}

const opening = new Set();

/**
 * Load a part of the page and resolve to what `open(part)` returns. A toast says when it cannot be loaded; then, and for
 * a second click while the first still waits, this resolves to null.
 */
export async function openPart(url, open) {
  if (opening.has(url.href)) return null;
  opening.add(url.href);
  const part = await loadPart(url).catch((error) => void report(error, "", () => openPart(url, open)));
  opening.delete(url.href);
  return part ? open(part) : null;
}
