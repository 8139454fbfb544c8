// The choice of the notebook that a note or a document is kept in.

import { el } from "./dom.js";
import { t } from "./i18n.js";

/** A labelled `<select>`; `onChoose(id)` hears the notebook's id, or null for none, and resolves to null where that failed. */
export function notebookSelect({ notebooks, chosen, testid, onChoose }) {
  let kept = chosen ?? "";
  const choose = async () => {
    const before = kept;
    kept = select.value;
    if ((await onChoose(kept || null)) === null) select.value = kept = before;
  };
  const select = el("select", { class: "input", "data-testid": testid, on: { change: choose } });
  const draw = (items) => {
    select.replaceChildren(
      el("option", { value: "" }, t("notebook.none")),
      ...items.map(({ id, title }) => el("option", { value: id }, title)));
    select.value = kept;
  };
  draw(kept ? [{ id: kept, title: notebooks.nameOf(kept) || t("loading") }] : []);
  notebooks.all().then(draw, () => {});
  return el("label", { class: "notebook-choice" }, el("span", {}, t("fact.notebook")), select);
}
