// Signs the user in: as the local user, through Supabase Auth, or with a pasted token.

import { ApiError, readError, request } from "../shared/http.js";
import { t } from "../language/i18n.js";

const TOKEN_KEY = "ibid.token";
const LOCAL_KEY = "ibid.key";
const KEY_ADDRESS = /^#key=([\w-]+)$/;
const NOT_LOCAL = [401, 403, 404, 405];

/**
 * The kind of session that the server asks for. Each kind has `token()`, which may prompt the user, `reject(token)` for a
 * token that the server did not accept, and `canAskAgain`: whether to prompt again after a second rejection.
 */
export async function openSession({ askForToken, askToSignIn }) {
  const response = await request("/api/rag/sign-in", { headers: { Accept: "application/json" } });
  if (!response.ok) throw await readError(response);
  const { method, url, key } = await response.json();
  if (method === "local") return new LocalSession(askForToken);
  if (method === "supabase") return new SupabaseSession({ url, key, askToSignIn });
  return new PastedSession(askForToken);
}

/** A token that the user pasted; it is kept until the tab is closed. */
class PastedSession {
  canAskAgain = true;
  #refused = false;

  /** `askForToken(refused, status)`: `status` is that of the refused sign-in as the local user, if there was one. */
  constructor(askForToken, status) {
    Object.assign(this, { askForToken, status });
  }

  async token() {
    const kept = sessionStorage.getItem(TOKEN_KEY);
    if (kept) return kept;
    const token = await this.askForToken(this.#refused, this.status);
    sessionStorage.setItem(TOKEN_KEY, token);
    return token;
  }

  reject() {
    this.#refused = true;
    sessionStorage.removeItem(TOKEN_KEY);
  }
}

/** The local user of this machine, who has the address with the key; anybody else pastes a token. */
class LocalSession {
  canAskAgain = false;
  #token = null;
  #pasted = null;

  constructor(askForToken) {
    this.askForToken = askForToken;
  }

  async token() {
    if (this.#pasted) return this.#pasted.token();
    if (this.#token) return this.#token;
    const response = await inTurnWithOtherTabs(() => this.#signIn());
    if (NOT_LOCAL.includes(response.status)) {
      this.#pasted = new PastedSession(this.askForToken, response.status);
      this.canAskAgain = true;
      return this.#pasted.token();
    }
    if (!response.ok) throw await readError(response);
    this.#token = (await response.json()).token;
    return this.#token;
  }

  /** With the key in the address, or else with the one that this browser's cookie is bound to. */
  async #signIn() {
    const [given, kept] = [takeKeyFromAddress(), localStorage.getItem(LOCAL_KEY)];
    const response = await this.#send(given ?? kept ?? "");
    if (response.status === 401 && given && kept && given !== kept) return this.#send(kept);
    if (response.ok && given) localStorage.setItem(LOCAL_KEY, given);
    return response;
  }

  #send(key) {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    return request("/api/local/token", { method: "POST", headers, body: JSON.stringify({ key }) });
  }

  reject() {
    this.#token = null;
    this.#pasted?.reject();
  }
}

/** Whether the address contains the key of the local user, which a running page has to be reloaded for. */
export function hasKeyInAddress() {
  return KEY_ADDRESS.test(location.hash);
}

function takeKeyFromAddress() {
  const key = KEY_ADDRESS.exec(location.hash)?.[1];
  if (key) history.replaceState(null, "", location.pathname + location.search);
  return key;
}

const SESSION_KEY = "ibid.session";
const EXPIRY_MARGIN_SECONDS = 30;

/** Supabase Auth, https://supabase.com/docs/guides/auth/sessions: kept in this browser, renewed before it expires. */
class SupabaseSession {
  canAskAgain = false;
  canSignOut = true;

  constructor({ url, key, askToSignIn }) {
    Object.assign(this, { url, key, askToSignIn });
  }

  async token() {
    const kept = readSession();
    if (isFresh(kept)) return kept.access_token;
    // Each refresh token works once, so tabs take turns, and the second tab finds the token that the first one fetched.
    const renewed = await inTurnWithOtherTabs(() => this.#renew());
    return renewed ?? (await this.askToSignIn(this)).access_token;
  }

  reject(token) {
    const kept = readSession();
    if (kept?.access_token === token) keepSession({ ...kept, expires_at: 0 });
  }

  /** Raises an ApiError whose `code` is Supabase's, like "invalid_credentials". */
  async signIn(email, password) {
    return keepSession(await this.#post("/token?grant_type=password", { email, password }));
  }

  /** Sends a sign-in link that leads back to this page; it creates no new account. */
  async sendLink(email) {
    const back = encodeURIComponent(location.origin + location.pathname);
    await this.#post(`/otp?redirect_to=${back}`, { email, create_user: false });
  }

  async signOut() {
    const token = readSession()?.access_token;
    localStorage.removeItem(SESSION_KEY);
    if (token) await this.#post("/logout?scope=local", {}, token).catch(() => {}); // the session is removed here, whatever the server replies
  }

  async #renew() {
    const kept = readSession();
    if (isFresh(kept)) return kept.access_token;
    if (!kept?.refresh_token) return null;
    try {
      return keepSession(await this.#post("/token?grant_type=refresh_token", { refresh_token: kept.refresh_token })).access_token;
    } catch (error) {
      if (error.status < 400 || error.status >= 500 || error.status === 429) throw error; // the refresh token may still work later
      localStorage.removeItem(SESSION_KEY);
      return null;
    }
  }

  async #post(path, body, token) {
    const headers = { apikey: this.key, "Content-Type": "application/json", Accept: "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    const response = await request(`${this.url}/auth/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const reply = await response.json().catch(() => ({}));
    if (response.ok) return reply;
    throw new ApiError({
      status: response.status, code: reply.error_code ?? reply.error ?? "error", detail: reply.msg ?? reply.error_description ?? "",
    });
  }
}

/**
 * Take the session that a sign-in link has put into the address; returns the error message of a failed link, else "".
 * Anyone could send a link with their own session, so it never replaces a session, and the user confirms whose it is.
 */
export function takeSessionFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has("access_token") && !given.has("error_description")) return "";
  history.replaceState(null, "", location.pathname + location.search);
  const [access_token, refresh_token] = [given.get("access_token"), given.get("refresh_token")];
  if (access_token && !readSession() && confirm(t("signIn.as", { email: emailIn(access_token) }))) {
    keepSession({ access_token, refresh_token, expires_in: Number(given.get("expires_in")) });
  }
  return given.get("error_description") ?? "";
}

/** The email address in a token, for display only: the server verifies the token. */
function emailIn(token) {
  try {
    const claims = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(claims, (char) => char.charCodeAt(0)))).email ?? "?";
  } catch {
    return "?";
  }
}

function inTurnWithOtherTabs(work) {
  return navigator.locks ? navigator.locks.request(SESSION_KEY, work) : work();
}

function isFresh(kept) {
  return Boolean(kept) && kept.expires_at - EXPIRY_MARGIN_SECONDS > Date.now() / 1000;
}

function readSession() {
  try {
    return JSON.parse(localStorage.getItem(SESSION_KEY));
  } catch {
    return null;
  }
}

/** Computes the expiry by this browser's clock, which may differ from the server's. */
function keepSession({ access_token, refresh_token, expires_in: lifetime, expires_at: kept }) {
  const expires_at = lifetime ? Date.now() / 1000 + lifetime : kept ?? 0;
  const session = { access_token, refresh_token, expires_at };
  localStorage.setItem(SESSION_KEY, JSON.stringify(session));
  return session;
}
