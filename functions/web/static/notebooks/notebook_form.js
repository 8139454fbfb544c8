// How answers about a notebook are written, and by which of the allowed models.

import { openDialog } from "../shared/dialogs.js";
import { el, setText } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { errorText, report, toast } from "../shared/notices.js";

const LONGEST = "500";

/** `onSave(notebook)` gets the notebook as it is saved. */
export async function openNotebookForm({ api, notebook, onSave }) {
  try {
    const [{ notebook_models: names }, now] = await Promise.all([api.get("/settings"), api.get(`/notebooks/${notebook.id}`)]);
    new NotebookForm({ api, notebook: now, models: names.split(",").map((name) => name.trim()).filter(Boolean), onSave });
  } catch (error) {
    report(error, t("failed.notebook"), () => openNotebookForm({ api, notebook, onSave }));
  }
}

class NotebookForm {
  constructor({ api, notebook, models, onSave }) {
    Object.assign(this, { api, notebook, onSave });
    this.instructions = el("textarea", { class: "input", id: "notebook-instructions", rows: "3", maxlength: LONGEST, value: notebook.instructions });
    const kept = notebook.chat_model && !models.includes(notebook.chat_model) ? [notebook.chat_model] : [];
    this.model = el("select", { class: "input", id: "notebook-model" }, el("option", { value: "" }, t("notebook.usualModel")),
      [...models, ...kept].map((name) => el("option", { value: name, selected: name === notebook.chat_model }, name)));
    this.message = el("p", { class: "form-message", role: "status" });
    const form = el("form", { class: "settings", id: "notebook-form", novalidate: true },
      el("div", { class: "setting string" }, el("label", { htmlFor: "notebook-instructions" }, t("notebook.instructions")), this.instructions, el("p", { class: "hint" }, t("notebook.instructionsHelp"))),
      models.length || kept.length ? el("div", { class: "setting" }, el("label", { htmlFor: "notebook-model" }, t("notebook.model")), this.model) : null);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    const save = el("button", { type: "submit", class: "button primary", "data-testid": "notebook-form-save", form: "notebook-form" }, t("save"));
    this.dialog = openDialog({ testid: "notebook-form-dialog", title: t("notebook.answers", { title: notebook.title }), body: form, actions: [this.message, el("span", { class: "spacer" }), save] });
  }

  async #save() {
    const changes = { instructions: this.instructions.value };
    if ((this.model.value || null) !== this.notebook.chat_model) changes.chat_model = this.model.value || null;
    try {
      this.onSave(await this.api.patch(`/notebooks/${this.notebook.id}`, changes));
      this.dialog.close();
      toast(t("notebook.answersSaved"));
    } catch (error) {
      setText(this.message, errorText(error));
    }
  }
}
