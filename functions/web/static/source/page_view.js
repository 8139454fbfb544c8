// One page of a document: the rendered image with the passage highlighted, or the text with the passage marked.

import { el, setAttribute, setText } from "../shared/dom.js";
import { formatPercent, t } from "../language/i18n.js";
import { icon } from "../shared/icons.js";
import { faultBox } from "../shared/notices.js";
import { findHighlight } from "./highlight.js";
import { FindBar } from "./find_bar.js";
import { cutAt } from "./offsets.js";
import { Outline } from "./outline.js";
import { unwrapParts } from "../language/unwrap.js";

const ZOOMS = [1, 1.25, 1.5, 2, 3];
const SHARE_ABOVE_MARK = 0.28;
const READABLE = 1.5; // the least zoom at which a phone shows words that can be read
const narrow = matchMedia("(max-width: 599px)");

export class PageView {
  #number;
  #count = null;
  #zoom = 0;
  #loads = 0;
  #url = null;
  #stop = null;
  #place;
  #hasZoomed = false;

  constructor({ api, citation }) {
    Object.assign(this, { api, citation, paged: citation.file_type === "pdf", address: addressOf(citation) });
    this.#number = citation.page_start;
    this.#place = { page: citation.page_start, start: citation.start_offset, end: citation.end_offset, quote: citation.quote };
    this.mode = this.paged ? "image" : "text";
    this.scroller = el("div", { class: "page-scroll", tabindex: "0", role: "group" });
    this.pageLabel = el("span", { class: "page-number", "data-testid": "page-number", "aria-live": "polite" });
    this.zoomLabel = el("span", { class: "zoom-level", "data-testid": "zoom-level" });
    const button = (name, testid, label, click) => el("button", {
      type: "button", class: "button quiet icon-only small", "data-testid": testid, "aria-label": label, title: label, on: { click },
    }, icon(name));
    this.previous = button("left", "page-previous", t(this.paged ? "page.previous" : "part.previous"), () => this.#turnPage(-1));
    this.next = button("right", "page-next", t(this.paged ? "page.next" : "part.next"), () => this.#turnPage(1));
    this.zoomOut = button("zoomOut", "zoom-out", t("zoom.out"), () => this.#zoomBy(-1));
    this.zoomIn = button("zoomIn", "zoom-in", t("zoom.in"), () => this.#zoomBy(1));
    const choice = (mode, testid, words) => el("button", { type: "button", class: "segment", "data-testid": testid, on: { click: () => this.#setMode(mode) } }, words);
    this.asImage = choice("image", "show-image", t("view.page"));
    this.asText = choice("text", "show-text", t("view.text"));
    this.zooms = el("div", { class: "zooms" }, this.zoomOut, this.zoomLabel, this.zoomIn);
    this.node = el("div", { class: "page-view" },
      el("div", { class: "page-bar", role: "toolbar", "aria-label": t("page.bar") },
        el("div", { class: "page-steps" }, this.previous, this.pageLabel, this.next),
        this.paged ? el("div", { class: "segments" }, this.asImage, this.asText) : null,
        el("div", { class: "page-tools" }, this.zooms, citation.source === "note" ? null : this.#finding(button))));
    this.node.append(...[this.find?.node, this.outline?.node, this.scroller].filter(Boolean));
  }

  /** The buttons of the search in the document and of its outline. */
  #finding(button) {
    const { api, address, paged } = this;
    const find = button("search", "find-open", t("find.title"), () => this.find.open());
    const outline = button("outline", "outline-open", t("outline.title"), () => this.#toggleOutline(outline));
    setAttribute(outline, "aria-expanded", false);
    this.find = new FindBar({ api, address, onFound: (place) => this.#go(place), onClose: () => find.focus() });
    this.outline = new Outline({
      api, address, paged,
      onChoose: (section) => {
        this.outline.close();
        this.#go(section);
        this.scroller.focus();
      },
      onClose: () => {
        setAttribute(outline, "aria-expanded", false);
        outline.focus();
      },
    });
    return [find, outline];
  }

  #toggleOutline(button) {
    if (!this.outline.node.hidden) return this.outline.close();
    setAttribute(button, "aria-expanded", true);
    return this.outline.open();
  }

  /** Close the search or the outline, the one with the focus first; returns whether one was open. */
  fold() {
    const open = [this.find, this.outline].filter((tool) => tool && !tool.node.hidden);
    const tool = open.find(({ node }) => node.contains(document.activeElement)) ?? open[0];
    tool?.close();
    return Boolean(tool);
  }

  /** Show a place of the document, `{page, start, end}`, with its words highlighted. */
  #go({ page, start, end }) {
    this.#place = { page, start, end: end ?? start };
    this.#number = page;
    this.show();
  }

  setCount(count) {
    this.#count = count;
    this.#drawBar();
  }

  /** Show the current page; resolves once it is shown or an error message is. */
  async show() {
    const load = ++this.#loads;
    this.#stop?.abort();
    this.#stop = new AbortController();
    this.#drawBar();
    this.scroller.setAttribute("aria-busy", "true");
    this.scroller.replaceChildren(el("div", { class: `sheet waiting ${this.mode}` }));
    try {
      if (this.mode === "image") await this.#showImage(load);
      else await this.#showText(load);
    } catch (error) {
      if (load === this.#loads && error.name !== "AbortError") this.#showError(error);
    }
    if (load === this.#loads) this.scroller.removeAttribute("aria-busy");
  }

  close() {
    this.#loads += 1;
    this.#stop?.abort();
    if (this.#url) URL.revokeObjectURL(this.#url);
  }

  get #cited() {
    const { page, start, end } = this.#place;
    return this.#number === page && end > start && !this.#isLost ? { start, end } : null;
  }

  /** Whether this is the cited page and the quoted words are no longer on it. */
  get #isLost() {
    return this.citation.place === "lost" && this.#place.quote !== undefined && this.#number === this.citation.page_start;
  }

  async #showImage(load) {
    const scale = ZOOMS[this.#zoom] > 1.5 ? 3 : 2;
    const path = `${this.address}/pages/${this.#number}.png`;
    const response = await this.api.call("GET", path, { query: { ...this.#cited, scale }, signal: this.#stop.signal, accept: "image/png" });
    const url = URL.createObjectURL(await response.blob());
    if (load !== this.#loads) return URL.revokeObjectURL(url);
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = url;
    const words = t(this.#cited ? "page.altCited" : "page.alt", { page: this.#number, file: this.citation.file_name });
    const image = el("img", { class: "sheet", alt: words, "data-testid": "page-image", draggable: "false", src: url });
    await image.decode();
    if (load !== this.#loads) return;
    this.scroller.replaceChildren(...(this.#isLost ? [changedHint()] : []), image);
    this.#applyZoom();
    this.#scrollTo(image, this.#cited ? findHighlight(image) : null);
  }

  /** Bring the highlight into view; on a phone, large enough to be read. */
  #scrollTo(image, box) {
    if (box && narrow.matches && !this.#hasZoomed) {
      const fitting = ZOOMS.filter((zoom) => zoom * (box.right - box.left) <= 1 || zoom <= READABLE);
      this.#zoom = ZOOMS.indexOf(fitting.at(-1));
      this.#drawBar();
      this.#applyZoom();
    }
    const { offsetWidth: width, offsetHeight: height, offsetTop, offsetLeft } = image;
    const { clientWidth, clientHeight } = this.scroller;
    const middle = box ? ((box.left + box.right) / 2) * width - clientWidth / 2 : 0;
    this.scroller.scrollLeft = box ? Math.min(middle, box.left * width - 12) + offsetLeft : 0;
    this.scroller.scrollTop = box ? Math.max(0, box.top * height + offsetTop - clientHeight * SHARE_ABOVE_MARK) : 0;
  }

  async #showText(load) {
    const { pages, page_count: count } = await this.api.get(`${this.address}/text`, { page: this.#number }, { signal: this.#stop.signal });
    if (load !== this.#loads) return;
    if (count) this.setCount(count);
    const { text, ocr_confidence: confidence } = pages.find(({ page }) => page === this.#number) ?? pages[0] ?? { text: "" };
    const [before, passage, after] = this.#cited ? cutAtPassage(text, this.#cited, this.#place.quote) : [text, "", ""];
    const shown = this.paged ? unwrapParts([before, passage, after]) : [before, passage, after];
    const mark = passage ? el("mark", { "data-testid": "page-mark" }, shown[1]) : null;
    this.scroller.replaceChildren(
      ...(this.#isLost || (this.#cited && !mark) ? [changedHint()] : []),
      ...(typeof confidence === "number" ? [el("p", { class: "hint" }, t("page.recognized", { percent: formatPercent(confidence / 100) }))] : []),
      el("div", { class: "sheet text", "data-testid": "page-text" }, shown[0], mark, shown[2]));
    this.scroller.scrollTop = mark ? Math.max(0, mark.offsetTop - this.scroller.clientHeight * SHARE_ABOVE_MARK) : 0;
  }

  #showError(error) {
    this.scroller.replaceChildren(faultBox(error, { what: t("failed.page"), onRetry: () => this.show(), testid: "page-error" }));
  }

  #turnPage(step) {
    this.#number += step;
    this.show();
  }

  #setMode(mode) {
    if (this.mode === mode) return;
    this.mode = mode;
    this.show();
  }

  /** Keeps the centre of the visible area in place. */
  #zoomBy(step) {
    const scroller = this.scroller;
    const middle = (scroller.scrollTop + scroller.clientHeight / 2) / scroller.scrollHeight;
    this.#hasZoomed = true;
    const across = (scroller.scrollLeft + scroller.clientWidth / 2) / scroller.scrollWidth;
    this.#zoom = Math.min(ZOOMS.length - 1, Math.max(0, this.#zoom + step));
    this.#drawBar();
    this.#applyZoom();
    scroller.scrollTop = middle * scroller.scrollHeight - scroller.clientHeight / 2;
    scroller.scrollLeft = across * scroller.scrollWidth - scroller.clientWidth / 2;
  }

  #applyZoom() {
    const sheet = this.scroller.querySelector("img.sheet");
    if (sheet) sheet.style.width = `${ZOOMS[this.#zoom] * 100}%`;
  }

  #drawBar() {
    const kind = this.paged ? "page" : "part";
    setText(this.pageLabel, this.#count ? t(`location.${kind}Of`, { page: this.#number, count: this.#count }) : t(`location.${kind}`, { page: this.#number }));
    this.previous.disabled = this.#number <= 1;
    this.next.disabled = this.#count !== null && this.#number >= this.#count;
    this.zooms.hidden = this.mode !== "image";
    setText(this.zoomLabel, formatPercent(ZOOMS[this.#zoom]));
    this.zoomOut.disabled = this.#zoom === 0;
    this.zoomIn.disabled = this.#zoom === ZOOMS.length - 1;
    setAttribute(this.asImage, "aria-pressed", this.mode === "image");
    setAttribute(this.asText, "aria-pressed", this.mode === "text");
    setAttribute(this.scroller, "aria-label", this.pageLabel.textContent);
  }
}

const changedHint = () => el("p", { class: "hint", role: "status", "data-testid": "page-changed" }, t("page.changed"));

/** The API path of the citation's document or note. */
export const addressOf = ({ source, document_id: id }) => `/${source === "note" ? "notes" : "documents"}/${id}`;

/** Split the text around the passage; if the text has changed, around the first match of the quote, if any. */
function cutAtPassage(text, { start, end }, quote) {
  const cut = cutAt(text, start, end);
  if (!quote || cut[1] === quote) return cut;
  const at = text.indexOf(quote);
  return at < 0 ? [text, "", ""] : [text.slice(0, at), quote, text.slice(at + quote.length)];
}
