// The form for Supabase Auth: a password, or a sign-in link by email.

import { openDialog } from "../shared/dialogs.js";
import { el, setText } from "../shared/dom.js";
import { t } from "../language/i18n.js";
import { errorText } from "../shared/notices.js";

const ERROR_KEYS = {
  invalid_credentials: "signIn.wrongPassword",
  email_not_confirmed: "signIn.unconfirmed",
  otp_disabled: "signIn.unknown", // what Supabase returns for an unknown address
  user_not_found: "signIn.unknown",
  over_email_send_rate_limit: "signIn.tooManyAttempts",
  over_request_rate_limit: "signIn.tooManyAttempts",
};

/** Shows the form until sign-in succeeds; resolves to the session. `notice` is shown first. */
export function askToSignIn(session, notice = "") {
  return new Promise((resolve) => {
    let signedIn = null;
    const email = el("input", { type: "email", id: "email", class: "input", autocomplete: "username", required: true, "data-testid": "sign-in-email" });
    const password = el("input", { type: "password", id: "password", class: "input", autocomplete: "current-password", "data-testid": "sign-in-password" });
    const fault = el("p", { class: "fault", role: "alert", "data-testid": "sign-in-fault" }, notice);
    const said = el("p", { class: "hint", role: "status", "data-testid": "sign-in-said" });
    const submit = el("button", { type: "submit", class: "button primary", "data-testid": "sign-in-submit" }, t("signIn.enter"));
    const link = el("button", { type: "button", class: "button", "data-testid": "sign-in-link" }, t("signIn.link"));
    const form = el("form", { class: "stack", "data-testid": "sign-in-form" },
      el("label", { htmlFor: "email" }, t("signIn.email")), email,
      el("label", { htmlFor: "password" }, t("signIn.password")), password,
      fault, said, submit, link);

    async function attempt(work) {
      submit.disabled = link.disabled = true;
      setText(fault, "");
      setText(said, "");
      try {
        await work();
      } catch (error) {
        const key = ERROR_KEYS[error.code];
        setText(fault, key ? t(key) : errorText(error));
      } finally {
        submit.disabled = link.disabled = false;
      }
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      attempt(async () => {
        signedIn = await session.signIn(email.value.trim(), password.value);
        dialog.close();
      });
    });
    link.addEventListener("click", () => {
      if (!email.reportValidity()) return;
      attempt(async () => {
        await session.sendLink(email.value.trim());
        setText(said, t("signIn.sent", { email: email.value.trim() }));
      });
    });
    const dialog = openDialog({
      testid: "sign-in-dialog", kind: "small", title: t("signIn.title"), body: form, closable: false,
      // Browsers close a dialog on the second Escape; the page cannot be used without signing in, so the form reopens.
      onClose: () => resolve(signedIn ?? askToSignIn(session)),
    });
    email.focus();
  });
}
