// Accepts files that are dropped anywhere on the page.

import { byId } from "../../shared/dom.js";

export function acceptDrops(onFiles) {
  const overlay = byId("drop-overlay");
  let depth = 0;
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  const show = (shown) => (overlay.hidden = !shown);
  addEventListener("dragenter", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth += 1;
    show(true);
  });
  addEventListener("dragover", (event) => carriesFiles(event) && event.preventDefault());
  addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (!depth) show(false);
  });
  addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth = 0;
    show(false);
    onFiles([...event.dataTransfer.files]);
  });
}
