// Modal dialogs on the browser's own <dialog>: Escape, focus trap and focus return come with it.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";

const SURE = "sure";

/**
 * Show a modal; it leaves the document when closed. Returns the dialog node.
 * `mayClose()` resolves to whether it may; a dialog that has it is closed by `leave(dialog)`.
 */
export function openDialog({ testid, title, body, actions = [], kind = "", onClose = () => {}, closable = true, mayClose = null }) {
  const heading = el("h2", { id: `${testid}-title`, tabindex: "-1" }, title);
  const request = async () => {
    if (closable && (!mayClose || (await mayClose()))) leave(dialog);
  };
  const close = el("button", {
    type: "button", class: "button quiet icon-only", "aria-label": t("close"), title: t("close"),
    "data-testid": testid.replace(/-dialog$/, "") + "-close", on: { click: request },
  }, icon("close"));
  const dialog = el("dialog", { class: `modal ${kind}`, "data-testid": testid, "aria-labelledby": heading.id },
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
    // A browser lets a second Escape through.
    if (mayClose && dialog.returnValue !== SURE) {
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

/** Close a dialog that has `mayClose` without asking it again. */
export function leave(dialog) {
  if (dialog.open) dialog.close(SURE);
}

/** Ask before something that cannot be undone; the safe answer has the focus. */
export async function confirm({ title, text, yes }) {
  return (await choose({ title, text, options: [{ value: "yes", words: yes, danger: true }] })) === "yes";
}

/** Ask which of several ways; resolves to the chosen option's value, or null. */
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
