// Loads the parts of the page that are needed later: the dialogs, and the texts of the other language.

import { mayTryAgain } from "./attempts.js";

const parts = new Map();

/**
 * Resolves to the module at `url`, which is written as a new URL relative to `import.meta.url`: the bundle looks for that.
 * A failed request is repeated; in the end it rejects with an error whose `code` is "part_not_loaded".
 */
export function loadPart(url) {
  if (!parts.has(url.href)) parts.set(url.href, importPart(url.href));
  parts.get(url.href).catch(() => parts.delete(url.href));
  return parts.get(url.href);
}

async function importPart(address) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      // Browsers remember that an address failed, so each attempt has its own.
      return await import(attempt ? `${address}?attempt=${Date.now()}` : address);
    } catch (error) {
      if (!(await mayTryAgain(attempt))) throw Object.assign(error, { code: "part_not_loaded" });
    }
  }
}
