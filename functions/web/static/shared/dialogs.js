// Modal dialogs based on <dialog>, which brings Escape, the focus trap and the return of the focus.

import { el } from "./dom.js";
import { t } from "../language/i18n.js";
import { icon } from "./icons.js";

const FORCED = "forced";

/**
 * Show a modal dialog and return its node, which is removed from the document when it is closed.
 * `mayClose()` resolves to whether the user may close it; `forceClose(dialog)` does not ask.
 */
export function openDialog({ testid, title, body, actions = [], kind = "", onClose = () => {}, closable = true, mayClose = null }) {
  const heading = el("h2", { id: `${testid}-title`, tabindex: "-1" }, title);
  const request = async () => {
    if (closable && (!mayClose || (await mayClose()))) forceClose(dialog);
  };
  const close = el("button", {
    type: "button", class: "button quiet icon-only", "aria-label": t("close"), title: t("close"),
    "data-testid": testid.replace(/-dialog$/, "") + "-close", on: { click: request },
  }, icon("close"));
  const dialog = el("dialog", { class: `modal ${kind}`, "data-testid": testid, "aria-labelledby": heading.id, "data-closable": closable },
    el("header", { class: "modal-head" }, heading, closable && kind !== "confirm" ? close : null),
    el("div", { class: "modal-body" }, body),
    actions.length ? el("footer", { class: "modal-foot" }, actions) : null);
  dialog.addEventListener("pointerdown", (event) => (dialog.dataset.pressed = event.target === dialog));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.dataset.pressed === "true" && request());
  dialog.addEventListener("cancel", (event) => {
    if (event.target !== dialog || (closable && !mayClose)) return;
    event.preventDefault();
    request();
  });
  dialog.addEventListener("close", () => {
    // Browsers close a dialog on the second Escape without asking.
    if (mayClose && dialog.returnValue !== FORCED) {
      dialog.showModal();
      request();
      return;
    }
    dialog.remove();
    onClose(dialog.returnValue);
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Close a dialog without calling its `mayClose`. */
export function forceClose(dialog) {
  if (dialog.open) dialog.close(FORCED);
}

/** Close every dialog that the user may close. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog.modal[data-closable]")) forceClose(dialog);
}

/** Ask before an action that cannot be undone; the cancel button has the focus. */
export async function confirm({ title, text, yes }) {
  return (await choose({ title, text, options: [{ value: "yes", words: yes, danger: true }] })) === "yes";
}

/** Ask the user to choose one of several options; resolves to its value, or to null if cancelled. */
export function choose({ title, text, options }) {
  return new Promise((resolve) => {
    const button = (value, words, look, testid) =>
      el("button", { type: "button", class: look, "data-testid": testid, on: { click: () => dialog.close(value) } }, words);
    const no = button("", t("cancel"), "button", "confirm-no");
    const others = options.map(({ value, words, danger }) => button(value, words, danger ? "button danger" : "button", `confirm-${value}`));
    const dialog = openDialog({
      testid: "confirm-dialog", kind: "confirm", title, body: el("p", {}, text), actions: [no, ...others],
      onClose: (answer) => resolve(options.some(({ value }) => value === answer) ? answer : null),
    });
    no.focus();
  });
}
