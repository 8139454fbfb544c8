// Every change of a document, or of a note, passes through one feed, so that all lists that show it agree.

import { StatusWatch } from "./watch.js";

/** Events: `change` and `gone` with the item as `detail`; `moved` with the ids of the notebooks that hold more or less. */
export class Feed extends EventTarget {
  constructor({ api, path, isMoving, slots }) {
    super();
    this.api = api;
    this.watch = new StatusWatch({
      api, path, isMoving, slots,
      onChange: (item) => this.changed(item),
      onGone: (item) => this.gone(item),
      onReplaced: (item, twin) => this.replaced(item, twin),
    });
  }

  /** Tell the newest state of an item. */
  changed(item) {
    this.watch.follow(item);
    this.dispatchEvent(new CustomEvent("change", { detail: item }));
  }

  gone(item) {
    this.watch.forget(item.id);
    this.dispatchEvent(new CustomEvent("gone", { detail: item }));
  }

  /** Another item answers in its place. */
  replaced(item, twin) {
    this.gone(item);
    this.changed(twin);
  }

  moved(...notebookIds) {
    this.dispatchEvent(new CustomEvent("moved", { detail: [...new Set(notebookIds)].filter(Boolean) }));
  }
}
