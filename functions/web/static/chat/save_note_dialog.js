// Saving an answer as a note, in a notebook or in none.

import { openDialog } from "../shared/dialogs.js";
import { el } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { notebookSelect } from "../shared/notebook_select.js";
import { errorText } from "../shared/notices.js";

/** `address` is the API path that creates the note. Resolves to the note, or to null if cancelled. */
export function openSaveNoteDialog({ api, notebooks, address }) {
  return new Promise((resolve) => {
    let notebookId = notebooks.chosen;
    let note = null;
    const fault = el("p", { class: "fault", role: "alert", "data-testid": "keep-error" });
    const select = notebookSelect({ notebooks, chosen: notebookId, testid: "keep-notebook", onChoose: (id) => (notebookId = id) ?? undefined });
    const save = async () => {
      yes.disabled = true;
      fault.textContent = "";
      try {
        note = await api.post(address, notebookId ? { notebook_id: notebookId } : {});
        dialog.close();
      } catch (error) {
        fault.textContent = errorText(error);
      }
      yes.disabled = false;
    };
    const yes = el("button", { type: "button", class: "button primary", "data-testid": "keep-yes", on: { click: save } }, t("saveAsNote.save"));
    const dialog = openDialog({
      testid: "keep-dialog", kind: "small", title: t("saveAsNote.title"), body: [el("p", { class: "hint" }, t("saveAsNote.explain")), select, fault],
      actions: [yes], onClose: () => resolve(note),
    });
    yes.focus();
  });
}
