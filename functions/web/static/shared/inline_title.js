// A title written where it stands: Enter or leaving the field keeps it, Escape does not.

import { el } from "./dom.js";

export const LONGEST_TITLE = 255;

/** Puts a field in place of what `row` holds; resolves to the new title, or to null when it is as it was. */
export function writeTitle(row, { value = "", label, testid }) {
  const input = el("input", { type: "text", class: "input", value, maxlength: LONGEST_TITLE, "aria-label": label, placeholder: label, "data-testid": testid });
  row.replaceChildren(input);
  input.select();
  input.focus();
  return new Promise((resolve) => {
    const finish = (keep) => {
      const title = input.value.trim();
      resolve(keep && title && title !== value ? title : null);
    };
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
      event.stopPropagation();
      event.preventDefault();
      finish(event.key === "Enter");
    });
    // Whatever was pressed instead has to get the focus first.
    input.addEventListener("blur", () => setTimeout(() => finish(true)));
  });
}
