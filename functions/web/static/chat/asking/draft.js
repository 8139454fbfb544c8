// Keeps the question that is being written, so that it survives a reload of the page.

const KEY = "ibid.question";

export class Draft {
  /** `box` is filled with the kept question, unless something was typed already. */
  constructor(box) {
    this.box = box;
    box.value ||= sessionStorage.getItem(KEY) ?? "";
    box.addEventListener("input", () => this.keep());
  }

  keep() {
    if (this.box.value.trim()) sessionStorage.setItem(KEY, this.box.value);
    else sessionStorage.removeItem(KEY);
  }
}
