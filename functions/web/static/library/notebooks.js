// The notebooks of the library, the open one, and the actions on them; every change is an event of Feed.

import { choose, confirm } from "../shared/dialogs.js";
import { Feed } from "../shared/lists/feed.js";
import { t } from "../language/i18n.js";
import { report, toast } from "../shared/notices.js";
import { Pager } from "../shared/pager.js";

const PAGE = 100;

export const EVERYTHING = { kind: "all" };
export const TRASH = { kind: "trash" };

/** Events in addition to those of Feed: `choose` when another place is opened, `emptied` when a notebook was deleted. */
export class Notebooks extends Feed {
  #names = new Map();

  constructor({ api }) {
    super({ api, path: "/notebooks", maxPolls: 0, isInProgress: () => false });
    this.place = EVERYTHING;
  }

  /** The id of the open notebook, or null. */
  get chosen() {
    return this.place.id ?? null;
  }

  /** The title of a notebook that was listed before, or "". */
  nameOf(id) {
    return this.#names.get(id) ?? "";
  }

  remember({ id, title }) {
    this.#names.set(id, title);
  }

  choose(place) {
    this.place = place;
    this.dispatchEvent(new Event("choose"));
  }

  chooseNotebook({ id, title }) {
    this.choose({ kind: "notebook", id, name: title });
  }

  /** Every notebook, for a select box. */
  async loadAll() {
    const pager = new Pager({ api: this.api, path: "/notebooks" });
    const items = await pager.load({ limit: PAGE });
    while (pager.hasMore) items.push(...(await pager.load({ limit: PAGE }, { next: true })));
    return items;
  }

  /** Reload these notebooks, whose number of items has changed. */
  async refresh(ids) {
    for (const id of ids) {
      try {
        this.changed(await this.api.get(`/notebooks/${id}`));
      } catch (error) {
        if (error.status === 404) this.gone({ id });
      }
    }
  }

  async create(title) {
    try {
      const made = await this.api.post("/notebooks", { title });
      this.changed(made);
      this.chooseNotebook(made);
    } catch (error) {
      report(error, t("failed.create", { name: title }), () => this.create(title));
    }
  }

  async rename({ id }, title) {
    try {
      this.changed(await this.api.patch(`/notebooks/${id}`, { title }));
    } catch (error) {
      report(error, t("failed.rename", { name: title }), () => this.rename({ id }, title));
    }
  }

  async remove(notebook) {
    const contents = await confirmRemoval(notebook);
    if (!contents) return;
    try {
      await this.api.delete(`/notebooks/${notebook.id}?contents=${contents}`);
      toast(t("notebook.deleted", { name: notebook.title }));
    } catch (error) {
      if (error.status !== 404) return report(error, t("failed.delete", { name: notebook.title }));
    }
    this.gone(notebook);
    if (this.chosen === notebook.id) this.choose(EVERYTHING);
    else this.dispatchEvent(new Event("emptied"));
  }
}

async function confirmRemoval({ title: name, note_count: notes, document_count: documents }) {
  const title = t("delete.notebookTitle", { name });
  if (!notes && !documents) return (await confirm({ title, text: t("delete.notebookEmpty"), yes: t("delete.yes") })) ? "keep" : null;
  return choose({
    title, text: t("delete.notebookText", { notes: t("count.notes", { n: notes }), documents: t("count.documents", { n: documents }) }),
    options: [{ value: "keep", words: t("delete.onlyNotebook") }, { value: "delete", words: t("delete.everything"), danger: true }],
  });
}
