// The form for installations without local sign-in, where the user pastes an access token.

import { openDialog } from "../shared/dialogs.js";
import { el } from "../shared/dom.js";
import { t } from "../language/i18n.js";

/**
 * Resolves to the pasted token. `refused` tells the user that the previous one was not accepted; `status` is that of the
 * refused sign-in as the local user: 401 means that the address had no unused key.
 */
export function askForToken(refused, status) {
  return new Promise((resolve) => {
    const input = el("input", {
      type: "password", id: "token", class: "input", autocomplete: "off", spellcheck: "false", required: true,
      "data-testid": "token-input", "aria-describedby": "token-help",
    });
    const form = el("form", { class: "stack", "data-testid": "token-form", method: "dialog" },
      refused ? el("p", { class: "fault", role: "alert" }, t("token.refused")) : null,
      status === 401 ? el("p", { "data-testid": "token-key" }, t("token.key")) : null,
      el("label", { htmlFor: "token" }, t("token.label")),
      input,
      el("p", { class: "hint", id: "token-help" }, t("token.help")),
      el("button", { type: "submit", class: "button primary", "data-testid": "token-submit" }, t("token.enter")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = input.value.trim().replace(/^Bearer\s+/i, "");
      if (token) dialog.close(token);
    });
    const dialog = openDialog({
      testid: "token-dialog", kind: "small", title: t("token.title"), body: form, closable: false,
      // Browsers close a dialog on the second Escape; the page cannot be used without signing in, so the form reopens.
      onClose: (token) => resolve(token || askForToken(refused, status)),
    });
    input.focus();
  });
}
