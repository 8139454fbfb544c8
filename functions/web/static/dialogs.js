// Modal dialogs on the browser's own <dialog>: Escape, focus trap and focus return come with it.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

/** Show a modal; it leaves the document when closed. Returns the dialog node. */
export function openDialog({ testid, title, body, actions = [], kind = "", onClose = () => {}, closable = true }) {
  const heading = el("h2", { id: `${testid}-title`, tabindex: "-1" }, title);
  const close = el("button", {
    type: "button", class: "button quiet icon-only", "aria-label": t("close"), title: t("close"),
    "data-testid": testid.replace(/-dialog$/, "") + "-close", on: { click: () => dialog.close() },
  }, icon("close"));
  const dialog = el("dialog", { class: `modal ${kind}`, "data-testid": testid, "aria-labelledby": heading.id },
    el("header", { class: "modal-head" }, heading, closable && kind !== "confirm" ? close : null),
    el("div", { class: "modal-body" }, body),
    actions.length ? el("footer", { class: "modal-foot" }, actions) : null);
  dialog.addEventListener("click", (event) => closable && event.target === dialog && dialog.close());
  dialog.addEventListener("cancel", (event) => closable || event.preventDefault());
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose(dialog.returnValue);
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Ask before something that cannot be undone; the safe answer has the focus. */
export function confirm({ title, text, yes }) {
  return new Promise((resolve) => {
    const no = el("button", { type: "button", class: "button", "data-testid": "confirm-no", on: { click: () => dialog.close("no") } }, t("cancel"));
    const go = el("button", { type: "button", class: "button danger", "data-testid": "confirm-yes", on: { click: () => dialog.close("yes") } }, yes);
    const dialog = openDialog({
      testid: "confirm-dialog", kind: "confirm", title, body: el("p", {}, text), actions: [no, go],
      onClose: (answer) => resolve(answer === "yes"),
    });
    no.focus();
  });
}
