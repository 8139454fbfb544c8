// DOM nodes by hand. Text goes in as text: nothing here, or anywhere on the page, parses HTML from data.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "textContent", "htmlFor", "id", "type", "tabIndex", "open", "selected"]);

/** `el("p", {class: "note", on: {click}}, "text", node)`; null children are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (PROPERTIES.has(name)) node[name] = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Set an attribute, or remove it for null; `false` is written out, as ARIA states want it. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Write text only when it changes, so that screen readers and selections are left in peace. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Make a change that may move nodes about, and leave the focus where it was. */
export function keepFocus(container, change) {
  const focused = container.contains(document.activeElement) ? document.activeElement : null;
  change();
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

/** Give the focus to a node when the one that had it is gone, and to nobody who has taken it since. */
export function focusIfLost(node) {
  if (document.activeElement === document.body) node?.focus({ preventScroll: true });
}
