// Every change of a document, note or notebook is an event of one feed, so that all lists agree.

import { StatusWatch } from "./watch.js";

/** Events: `change` and `gone` with the item as `detail`; `moved` with the ids of the notebooks whose contents changed. */
export class Feed extends EventTarget {
  constructor({ api, path, isInProgress, maxPolls }) {
    super();
    this.api = api;
    this.watch = new StatusWatch({
      api, path, isInProgress, maxPolls,
      onChange: (item) => this.changed(item),
      onGone: (item) => this.gone(item),
      onReplaced: (item, existing) => this.replaced(item, existing),
    });
  }

  /** Publish the new state of an item. */
  changed(item) {
    this.watch.follow(item);
    this.dispatchEvent(new CustomEvent("change", { detail: item }));
  }

  gone(item) {
    this.watch.forget(item.id);
    this.dispatchEvent(new CustomEvent("gone", { detail: item }));
  }

  /** The item is a duplicate of `existing`, which the server returns instead. */
  replaced(item, existing) {
    this.gone(item);
    this.changed(existing);
  }

  moved(...notebookIds) {
    this.dispatchEvent(new CustomEvent("moved", { detail: [...new Set(notebookIds)].filter(Boolean) }));
  }
}
