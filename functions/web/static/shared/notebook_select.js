// A select box for the notebook of a note or a document.

import { el } from "./dom.js";
import { t } from "../language/i18n.js";

/** A labelled `<select>`. `onChoose(id)` receives the id, or null for no notebook; if it resolves to null, the choice is undone. */
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
  notebooks.loadAll().then(draw, () => {});
  return el("label", { class: "notebook-choice" }, el("span", {}, t("fact.notebook")), select);
}
