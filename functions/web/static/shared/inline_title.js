// Edits a title in place: Enter or leaving the field accepts it, Escape discards it.

import { el } from "./dom.js";

export const LONGEST_TITLE = 255;

/** Replaces the contents of `row` by a text field; resolves to the new title, or to null if it is unchanged. */
export function editTitle(row, { value = "", label, testid }) {
  const input = el("input", { type: "text", class: "input", value, maxlength: LONGEST_TITLE, "aria-label": label, placeholder: label, "data-testid": testid });
  row.replaceChildren(input);
  input.select();
  input.focus();
  return new Promise((resolve) => {
    const finish = (accept) => {
      const title = input.value.trim();
      resolve(accept && title && title !== value ? title : null);
    };
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
      event.stopPropagation();
      event.preventDefault();
      finish(event.key === "Enter");
    });
    // The clicked element must receive the focus first.
    input.addEventListener("blur", () => setTimeout(() => finish(true)));
  });
}
