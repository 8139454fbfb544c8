// One document in the library: its title, progress and actions.

import { el, setAttribute, setText } from "../shared/dom.js";
import { formatSize, textOrNull, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { drawBadge, failureText } from "../shared/status.js";
import { isSearchable, titleOf } from "./documents.js";

export class DocumentRow {
  /**
   * `actions`: open, info, attach, retry, uploadAgain, remove, each called with the document; `isAttached(id)`; `locationText(document)`.
   * `removal`: `delete`, or `detach` where the row is an attachment.
   */
  constructor(document, actions, { removal = "delete" } = {}) {
    Object.assign(this, { actions, removal });
    this.kind = el("span", { class: "kind", "aria-hidden": "true" });
    this.title = el("span", { class: "document-title" });
    this.version = el("span", { class: "version", "data-testid": "document-version" });
    this.meta = el("span", { class: "document-meta" });
    this.badge = el("span", { class: "badge", "data-testid": "document-badge" });
    this.error = el("p", { class: "document-error", hidden: true });
    this.bar = el("progress", { class: "bar", max: "1", "data-testid": "document-progress" });
    this.progressText = el("span", { class: "progress-text", "data-testid": "document-progress-text" });
    this.progress = el("div", { class: "document-progress", hidden: true }, this.bar, this.progressText);
    this.attach = this.#button("attach", "attach", "document-attach");
    this.retry = this.#button("retry", "retry", "document-retry", "button small");
    this.again = this.#button("uploadAgain", "upload", "document-upload-again", "button small");
    this.info = this.#button("info", "info", "document-info");
    this.remove = this.#button("remove", removal === "detach" ? "detach" : "delete", `document-${removal}`);
    const open = el("button", {
      type: "button", class: "document-open", "data-testid": "document-open", on: { click: () => actions.open(this.item) },
    }, this.title);
    this.node = el("li", { class: "document", "data-testid": "document-row" },
      this.kind,
      el("div", { class: "document-main" }, open, el("div", { class: "document-line" }, this.badge, this.version, this.meta), this.progress, this.error, this.retry, this.again),
      el("div", { class: "document-actions" }, this.attach, this.info, this.remove));
    this.update(document);
  }

  update(document) {
    this.item = document;
    const { status } = document;
    const named = { name: titleOf(document) };
    this.node.dataset.status = status;
    this.node.dataset.documentId = document.id;
    this.kind.dataset.type = document.file_type;
    setText(this.kind, document.file_type);
    setText(this.title, named.name);
    setAttribute(this.title, "title", document.file_name);
    this.version.hidden = !(document.version > 1);
    setText(this.version, t("document.version", { n: document.version }));
    setText(this.meta, [metaOf(document), this.actions.locationText(document)].filter(Boolean).join(" · "));
    drawBadge(this.badge, document);
    this.#drawProgress(document);
    const never = hasNotArrived(document);
    // An indexed document has an error when its newer file was refused, or when indexing it again has failed.
    const hasFailed = status === "failed" || (status === "indexed" && Boolean(document.error_code));
    this.error.hidden = !hasFailed && !never;
    this.error.classList.toggle("plain", !hasFailed);
    setText(this.error, hasFailed ? failureText(document) : never ? t("upload.notArrived") : "");
    this.retry.hidden = !canRetry(document);
    this.retry.replaceChildren(icon("retry"), t("document.retry"));
    this.again.hidden = !never || !this.actions.uploadAgain;
    this.again.replaceChildren(icon("upload"), t("upload.again"));
    setAttribute(this.again, "aria-label", t("upload.againNamed", named));
    this.#drawAttach(document, named);
    setAttribute(this.remove, "aria-label", t(`document.${this.removal}Named`, named));
    setAttribute(this.remove, "title", t(`document.${this.removal}`));
    setAttribute(this.info, "aria-label", t("document.detailsNamed", named));
    setAttribute(this.info, "title", t("document.details"));
    setAttribute(this.retry, "aria-label", t("document.retryNamed", named));
  }

  #button(action, name, testid, look = "button quiet icon-only small") {
    const click = () => this.actions[action](this.item);
    return el("button", { type: "button", class: look, "data-testid": testid, on: { click } }, icon(name));
  }

  #drawAttach(document, named) {
    const attached = this.actions.isAttached(document.id);
    this.attach.hidden = !isSearchable(document);
    setAttribute(this.attach, "aria-pressed", attached);
    setAttribute(this.attach, "aria-label", t("document.attachNamed", named));
    setAttribute(this.attach, "title", t(attached ? "scope.included" : "document.attach"));
  }

  #drawProgress(document) {
    const { status, progress } = document;
    const moving = ["uploaded", "processing", "reindexing"].includes(status);
    this.progress.hidden = !moving;
    if (!moving) return;
    const doing = stageOf(document);
    const counted = progress?.total > 0;
    if (counted) this.bar.value = Math.min(1, progress.done / progress.total);
    else this.bar.removeAttribute("value");
    const of = counted ? t(document.file_type === "pdf" ? "progress.pages" : "progress.parts", { done: progress.done, total: progress.total }) : null;
    setText(this.progressText, [doing, of].filter(Boolean).join(" · "));
    setAttribute(this.bar, "aria-label", doing);
  }
}

/** Failures that another attempt cannot mend: the file itself is the cause. */
const FINAL = new Set([
  "corrupt", "empty", "encrypted", "no_text", "too_complex", "too_large", "too_many_pages", "unsupported_type", "upload_expired", "wrong_content",
]);
const canRetry = ({ status, error_code: code }) => status === "failed" && !FINAL.has(code);

/** Whether the file was announced and its bytes never came. */
const hasNotArrived = ({ status, error_code: code }) => status === "awaiting_upload" || code === "upload_expired";

/** The current processing stage; while a retry is pending, the error of the last attempt. */
function stageOf(document) {
  const { status, stage, error } = document;
  if (stage === "waiting" && error) return t("stage.retry", { why: failureText(document) });
  if (stage) return textOrNull(`stage.${stage}`) ?? stage;
  return t(status === "uploaded" ? "stage.waiting" : "stage.reading");
}

/** The length of a document: its pages if known, else its size. */
export function metaOf({ file_type: type, page_count: pages, size_bytes: size }) {
  if (pages) return t(type === "pdf" ? "document.pages" : "document.parts", { n: pages });
  return size ? formatSize(size) : "";
}
