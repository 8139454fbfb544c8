// One document in the library: its title, progress and actions.

import { el, setAttribute, setText } from "../shared/dom.js";
import { formatSize, textOrNull, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { failureText } from "../shared/status.js";
import { isSearchable, titleOf } from "./documents.js";

export class DocumentRow {
  #bar = null;

  /**
   * `actions`: open, info, attach, retry, uploadAgain, trash, restore, remove, detach, each called with the document; `isAttached(id)`;
   * `locationText(document)`; and where rows can be selected `select(document, event)`, `isSelected(id)`, `step(document, event)`.
   * `removal`: `trash`, or `detach` where the row is an attachment.
   */
  constructor(item, actions, { removal = "trash" } = {}) {
    Object.assign(this, { actions, removal });
    this.node = el("li", { class: "document", "data-testid": "document-row" });
    this.update(item);
  }

  /** Fill the row. */
  draw() {
    this.kind = el("span", { class: "kind", "aria-hidden": "true" });
    this.title = el("span", { class: "document-title" });
    this.line = el("div", { class: "document-line" });
    this.meta = el("span", { class: "document-meta" });
    this.more = el("div", {});
    this.buttons = el("div", { class: "document-actions" });
    const open = el("button", {
      type: "button", class: "document-open", "data-testid": "document-open", on: { click: () => this.actions.open(this.item) },
    }, this.title);
    this.node.append(this.#pick(), el("div", { class: "document-main" }, open, this.line, this.more), this.buttons);
    this.#write();
  }

  /** Leave an empty node. */
  clear() {
    this.node.replaceChildren();
    this.#bar = null;
  }

  update(item) {
    this.item = item;
    this.node.dataset.status = item.status;
    this.node.dataset.documentId = item.id;
    this.node.classList.toggle("trashed", Boolean(item.trashed_at));
    this.node.classList.toggle("selected", Boolean(this.actions.isSelected?.(item.id)));
    if (this.node.hasChildNodes()) this.#write();
  }

  #write() {
    const { item } = this;
    const name = titleOf(item);
    this.kind.dataset.type = item.file_type;
    setText(this.kind, item.file_type);
    setText(this.title, name);
    setAttribute(this.title, "title", item.file_name);
    setText(this.meta, [metaOf(item), this.actions.locationText(item)].filter(Boolean).join(" · "));
    if (this.box) {
      this.box.checked = this.actions.isSelected(item.id);
      setAttribute(this.box, "aria-label", t("select.named", { name }));
    }
    this.#replace(this.line, [version(item), this.meta]);
    this.#replace(this.more, [this.#progress(), failure(item, Boolean(this.more.querySelector("details[open]"))), this.#mend()]);
    this.#replace(this.buttons, item.trashed_at
      ? [this.#button("restore", "restore", name), this.#button("remove", "delete", name, "document-delete")]
      : [isSearchable(item) ? this.#attach(name) : null, this.#button("info", "info", name), this.#button(this.removal, this.removal === "detach" ? "detach" : "delete", name)]);
  }

  /** Replace the children that have changed; a button with the focus hands it to its successor. */
  #replace(node, children) {
    const next = children.filter(Boolean);
    const isSame = next.length === node.childNodes.length && next.every((child, at) => child.isEqualNode(node.childNodes[at]));
    if (isSame) return;
    const focused = node.contains(document.activeElement) ? document.activeElement.dataset.testid : null;
    node.replaceChildren(...next);
    if (focused) (node.querySelector(`[data-testid=${focused}]`) ?? this.node.querySelector(".document-open")).focus({ preventScroll: true });
  }

  #pick() {
    if (!this.actions.select) return this.kind;
    this.box = el("input", {
      type: "checkbox", "data-testid": "document-select",
      on: { click: (event) => this.actions.select(this.item, event), keydown: (event) => this.actions.step(this.item, event) },
    });
    return el("label", { class: "pick" }, this.box, this.kind);
  }

  #button(action, symbol, name, testid = `document-${action}`) {
    const words = { info: "details", remove: "deleteForGood" }[action] ?? action;
    return el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": testid, "aria-label": t(`document.${words}Named`, { name }), title: t(`document.${words}`),
      on: { click: () => this.actions[action](this.item) },
    }, icon(symbol));
  }

  #attach(name) {
    const attached = this.actions.isAttached(this.item.id);
    const button = this.#button("attach", "attach", name);
    setAttribute(button, "aria-pressed", attached);
    setAttribute(button, "title", t(attached ? "scope.included" : "document.attach"));
    return button;
  }

  /** What the user can do about a document that failed or never arrived. */
  #mend() {
    const again = hasNotArrived(this.item) && this.actions.uploadAgain;
    const [action, symbol, words, label] = again ? ["uploadAgain", "upload", "upload.again", "upload.againNamed"] : ["retry", "retry", "document.retry", "document.retryNamed"];
    if (this.item.trashed_at || (!again && !canRetry(this.item))) return null;
    return el("button", {
      type: "button", class: "button small", "data-testid": again ? "document-upload-again" : "document-retry", "aria-label": t(label, { name: titleOf(this.item) }),
      on: { click: () => this.actions[action](this.item) },
    }, icon(symbol), t(words));
  }

  #progress() {
    const { status, progress, file_type: type } = this.item;
    if (!IN_WORK.has(status)) return (this.#bar = null);
    this.#bar ??= progressBar();
    const [bar, text] = this.#bar.children;
    const counted = progress?.total > 0;
    if (counted) bar.value = Math.min(1, progress.done / progress.total);
    else bar.removeAttribute("value");
    const of = counted ? t(type === "pdf" ? "progress.pages" : "progress.parts", { done: progress.done, total: progress.total }) : null;
    setText(text, [stageOf(this.item), of].filter(Boolean).join(" · "));
    setAttribute(bar, "aria-label", stageOf(this.item));
    return this.#bar;
  }
}

const IN_WORK = new Set(["uploaded", "processing", "reindexing"]);

const progressBar = () => el("div", { class: "document-progress" },
  el("progress", { class: "bar", max: "1", "data-testid": "document-progress" }), el("span", { class: "progress-text", "data-testid": "document-progress-text" }));

const version = ({ version: n }) => (n > 1 ? el("span", { class: "version", "data-testid": "document-version" }, t("document.version", { n })) : null);

/** The failure in one line, which opens to the whole text. An indexed document has one when its newer file was refused, or when indexing it again has failed. */
function failure(document, open) {
  const { status, error_code: code } = document;
  const hasFailed = status === "failed" || (status === "indexed" && Boolean(code));
  const words = hasFailed ? failureText(document) : hasNotArrived(document) ? t("upload.notArrived") : null;
  return words && el("details", { class: `document-error${hasFailed ? "" : " plain"}`, open }, el("summary", {}, words));
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
