// The keyboard shortcuts: single keys, which count only outside of text fields and dialogs.

import { openPart } from "../shared/notices.js";

const SHEET = new URL("./shortcut_sheet.js", import.meta.url);
const FIELDS = "input, textarea, select, [contenteditable]";

/** `actions` maps keys to functions; `?` opens the sheet that lists them. */
export function listenToShortcuts(actions) {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.(FIELDS) || document.querySelector("dialog.modal[open]");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
    const act = event.key === "?" ? openShortcuts : actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

export const openShortcuts = () => openPart(SHEET, (part) => part.openShortcutSheet());
