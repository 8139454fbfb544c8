// The sheet that lists the keyboard shortcuts.

import { openDialog } from "../shared/dialogs.js";
import { el } from "../shared/dom.js";
import { t } from "../language/i18n.js";

const KEYS = [
  ["/", "shortcut.question"], ["n", "shortcut.new"], ["f", "shortcut.filter"], ["u", "shortcut.upload"], ["j", "shortcut.next"], ["k", "shortcut.previous"],
  ["← →", "shortcut.step"], ["Esc", "shortcut.close"], ["?", "shortcut.sheet"],
];

export function openShortcutSheet() {
  const rows = KEYS.flatMap(([key, words]) => [el("dt", {}, key.split(" ").map((one) => el("kbd", {}, one))), el("dd", {}, t(words))]);
  openDialog({ testid: "shortcuts-dialog", kind: "small", title: t("shortcut.title"), body: el("dl", { class: "shortcuts" }, rows) });
}
