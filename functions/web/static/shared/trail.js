// The places that were visited, as entries of the browser's history, so that Back and Forward move between them.

const NOWHERE = { conversation: null, source: null, dialog: null, link: null };
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export class Trail {
  #index = history.state?.index ?? 0;
  #shown = NOWHERE;

  /**
   * A place is `{conversation, source, dialog, link}`: the id of a conversation, an open citation, an open dialog `{kind, id}`, and
   * the address that led to it. `onMove(place)` shows an earlier or later one, `onLink()` follows the address.
   */
  constructor({ onMove, onLink }) {
    Object.assign(this, { onMove, onLink });
    addEventListener("popstate", ({ state }) => this.#moved(state));
  }

  /** Show the place that a reloaded page showed, or follow the address, unless the user has moved on already. */
  start() {
    if (this.#shown !== NOWHERE) return;
    const { place } = history.state ?? {};
    if (place && !place.link) {
      this.#shown = place;
      this.onMove(place);
    } else if (location.hash) this.onLink();
  }

  /** A new place, which differs from the present one by `change`. */
  visit(change) {
    const place = { ...this.#shown, link: null, ...change };
    if (isSame(place, this.#shown)) return;
    if (!history.state?.place) history.replaceState({ index: this.#index, place: this.#shown }, ""); // so that Back finds where it began
    this.#index += 1;
    this.#shown = place;
    history.pushState({ index: this.#index, place }, "", addressOf(place));
  }

  /** The present place has changed by itself: it gets no entry of its own. */
  amend(change) {
    this.#shown = { ...this.#shown, ...change };
    history.replaceState({ index: this.#index, place: this.#shown }, "", addressOf(this.#shown));
  }

  /** What was open under `key` is closed, unless something else is open there by now. */
  leave(key, value = this.#shown[key]) {
    if (this.#shown[key] && isSame(this.#shown[key], value)) this.amend({ [key]: null, link: null });
  }

  #moved(state) {
    if (!state?.place) {
      this.#index += 1;
      return this.onLink();
    }
    const direction = Math.sign(state.index - this.#index);
    this.#index = state.index;
    if (isSame(state.place, this.#shown) && direction) return history.go(direction); // what was closed since looks like the entry before
    this.#shown = state.place;
    this.onMove(state.place);
  }
}

const addressOf = ({ conversation, link }) => link ?? (conversation ? `#c=${conversation}` : location.pathname + location.search);
