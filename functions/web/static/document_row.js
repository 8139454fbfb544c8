// One document in the library: its name, how far it is, and what can be done with it.

import { el, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { formatNumber, formatSize, known, t } from "./i18n.js";

export class DocumentRow {
  /** `actions`: open, attach, retry, remove, each called with the document; `isAttached(id)`. */
  constructor(document, actions) {
    this.actions = actions;
    this.kind = el("span", { class: "kind", "aria-hidden": "true" });
    this.title = el("span", { class: "document-title" });
    this.meta = el("span", { class: "document-meta" });
    this.badge = el("span", { class: "badge", "data-testid": "document-badge" });
    this.error = el("p", { class: "document-error", hidden: true });
    this.bar = el("progress", { class: "bar", max: "1", "data-testid": "document-progress" });
    this.progressText = el("span", { class: "progress-text" });
    this.progress = el("div", { class: "document-progress", hidden: true }, this.bar, this.progressText);
    this.attach = this.#button("attach", "attach", "document-attach");
    this.retry = this.#button("retry", "retry", "document-retry", "button small");
    this.remove = this.#button("remove", "delete", "document-delete");
    const open = el("button", {
      type: "button", class: "document-open", "data-testid": "document-open", on: { click: () => actions.open(this.document) },
    }, this.title);
    this.node = el("li", { class: "document", "data-testid": "document-row" },
      this.kind,
      el("div", { class: "document-main" }, open, el("div", { class: "document-line" }, this.badge, this.meta), this.progress, this.error, this.retry),
      el("div", { class: "document-actions" }, this.attach, this.remove));
    this.update(document);
  }

  update(document) {
    this.document = document;
    const { status } = document;
    this.node.dataset.status = status;
    this.node.dataset.documentId = document.id;
    this.kind.dataset.type = document.file_type;
    setText(this.kind, document.file_type);
    setText(this.title, document.title || document.file_name);
    setAttribute(this.title, "title", document.file_name);
    setText(this.meta, metaOf(document));
    drawBadge(this.badge, document);
    this.#drawProgress(document);
    this.error.hidden = status !== "failed";
    setText(this.error, status === "failed" ? failure(document) : "");
    this.retry.hidden = status !== "failed";
    this.retry.replaceChildren(icon("retry"), t("document.retry"));
    this.#drawAttach(document);
    const named = { name: document.title || document.file_name };
    setAttribute(this.remove, "aria-label", t("document.deleteNamed", named));
    setAttribute(this.remove, "title", t("document.delete"));
    setAttribute(this.retry, "aria-label", t("document.retryNamed", named));
  }

  #button(action, name, testid, look = "button quiet icon-only small") {
    const click = () => this.actions[action](this.document);
    return el("button", { type: "button", class: look, "data-testid": testid, on: { click } }, icon(name));
  }

  #drawAttach(document) {
    const attached = this.actions.isAttached(document.id);
    this.attach.hidden = !["indexed", "reindexing"].includes(document.status);
    setAttribute(this.attach, "aria-pressed", attached);
    setAttribute(this.attach, "aria-label", t("document.attachNamed", { name: document.title || document.file_name }));
    setAttribute(this.attach, "title", t(attached ? "document.attached" : "document.attach"));
  }

  #drawProgress({ status, progress, stage }) {
    const moving = ["uploaded", "processing", "reindexing"].includes(status);
    this.progress.hidden = !moving;
    if (!moving) return;
    const counted = progress?.total > 0;
    if (counted) this.bar.value = Math.min(1, progress.done / progress.total);
    else this.bar.removeAttribute("value");
    const doing = stage ? known(`stage.${stage}`) ?? stage : t(status === "uploaded" ? "stage.waiting" : "stage.reading");
    setText(this.progressText, counted ? `${doing} · ${formatNumber(progress.done)} / ${formatNumber(progress.total)}` : doing);
    setAttribute(this.bar, "aria-label", doing);
  }
}

/** The status as words and colour, the same in the row and in the details. */
export function drawBadge(node, { status, chunk_count: chunks }) {
  node.dataset.status = status;
  setText(node, status === "indexed" ? t("status.indexed", { n: chunks ?? 0 }) : t(`status.${status}`));
}

export function failure(document) {
  const ours = document.error_code ? known(`error.${document.error_code}`) : null;
  return ours ?? (document.error || t("error.unknown"));
}

/** How long a document is: pages where they are known, else bytes. */
export function metaOf({ file_type: type, page_count: pages, size_bytes: size }) {
  if (pages) return t(type === "pdf" ? "document.pages" : "document.parts", { n: pages });
  return size ? formatSize(size) : "";
}
