// One upload, shown until the row of its document replaces it.

import { el, setText } from "../../shared/dom.js";
import { cleanName, formatPercent, formatSize, t } from "../../language/i18n.js";
import { icon } from "../../shared/icons.js";

export class UploadRow {
  /** `onDismiss` stops a running upload, or removes a finished row. */
  constructor(file, { onDismiss }) {
    this.bar = el("progress", { class: "bar", max: "1", "data-testid": "upload-progress", "aria-label": t("upload.progress", { name: file.name }) });
    this.text = el("span", { class: "progress-text", role: "status" });
    this.dismiss = el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": "upload-dismiss",
      "aria-label": t("upload.dismiss", { name: file.name }), title: t("close"), on: { click: onDismiss },
    }, icon("close"));
    this.action = el("p", { hidden: true });
    this.node = el("li", { class: "document upload", "data-testid": "upload-row" },
      el("span", { class: "kind", "aria-hidden": "true" }, icon("upload")),
      el("div", { class: "document-main" },
        el("span", { class: "document-title" }, cleanName(file.name)),
        el("div", { class: "document-progress" }, this.bar, this.text, this.action)),
      el("div", { class: "document-actions" }, this.dismiss));
    this.size = formatSize(file.size);
    this.show("queued");
  }

  /** `state` is `queued`, `checking`, `sending` (with `share`), `failed` (with `words`) or `duplicate` (with `words` and `action`). */
  show(state, { share, words, action } = {}) {
    this.node.dataset.state = state;
    const over = state === "failed" || state === "duplicate";
    this.bar.hidden = over;
    if (share === undefined) this.bar.removeAttribute("value");
    else this.bar.value = share;
    if (state === "duplicate") this.text.dataset.testid = "duplicate-notice";
    if (state === "sending") setText(this.text, share < 1 ? `${formatPercent(share)} · ${this.size}` : t("upload.finishing"));
    else setText(this.text, words ?? t(`upload.${state}`));
    this.action.hidden = !action;
    if (action) this.action.replaceChildren(el("button", { type: "button", class: "button small", "data-testid": "upload-action", on: { click: action.click } }, action.words));
  }
}
