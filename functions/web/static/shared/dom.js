// Creates and changes DOM nodes. Data is inserted as text: nothing on the page parses HTML from data.

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

/** Write text only when it changes, so that screen readers and selections are not disturbed. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Run a change that may move nodes, and keep the focus where it was. */
export function keepFocus(container, change) {
  const focused = container.contains(document.activeElement) ? document.activeElement : null;
  change();
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

/** Focus a node if the focused one was removed and nothing else has taken the focus. */
export function focusIfLost(node) {
  if (document.activeElement === document.body) node?.focus({ preventScroll: true });
}

/**
 * Call back whenever an enabled button scrolls into view, so that lists load more by themselves.
 *
 * The observer reports changes only. After a callback that returns true, the button is observed anew, because it may still be in view:
 * the window is taller than what was loaded, or the user has scrolled on at once.
 */
export function onScrolledIntoView(button, callback) {
  if (!("IntersectionObserver" in window)) return;
  const observer = new IntersectionObserver(async (entries) => {
    if (!entries.some((entry) => entry.isIntersecting) || button.hidden || button.disabled || !(await callback())) return;
    observer.unobserve(button);
    observer.observe(button);
  });
  observer.observe(button);
}
