// The three panes: Sources with its two tabs, the conversation, and the page. On narrow screens one of them is shown at a time.

import { byId, setAttribute } from "./dom.js";

let before = "chat";

export function listenToPanes() {
  for (const tab of document.querySelectorAll(".tab")) tab.addEventListener("click", () => showPane(tab.dataset.view));
  const tabs = sourceTabs();
  for (const tab of tabs) {
    tab.addEventListener("click", () => showTab(tab.dataset.tab));
    tab.addEventListener("keydown", ({ key }) => {
      if (!["ArrowLeft", "ArrowRight"].includes(key)) return;
      const next = tabs.find((other) => other !== tab);
      showTab(next.dataset.tab);
      next.focus();
    });
  }
  showPane("chat");
}

/** Show `sources`, `chat` or `page`; on wide screens all of them are shown already. */
export function showPane(view) {
  const shell = byId("shell");
  if (view === "page" && shell.dataset.view !== "page") before = shell.dataset.view;
  shell.dataset.view = view;
  for (const tab of document.querySelectorAll(".tab")) setAttribute(tab, "aria-current", tab.dataset.view === view ? "page" : null);
}

/** Show the tab `library` or `conversations` of the sources. */
function showTab(name) {
  for (const tab of sourceTabs()) {
    const isOpen = tab.dataset.tab === name;
    setAttribute(tab, "aria-selected", isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
    byId(`tab-${tab.dataset.tab}`).hidden = !isOpen;
  }
}

export function showLibrary() {
  showPane("sources");
  showTab("library");
}

/** Open the pane of the page, or close it and go back to the pane that was shown before. */
export function togglePage(isOpen) {
  byId("shell").toggleAttribute("data-source", isOpen);
  document.querySelector(".tab[data-view=page]").disabled = !isOpen;
  if (isOpen) showPane("page");
  else if (byId("shell").dataset.view === "page") showPane(before);
}

const sourceTabs = () => [...document.querySelectorAll(".side-tab")];
