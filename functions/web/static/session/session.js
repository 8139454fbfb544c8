// Who is asking: the laptop's own user, somebody known to Supabase Auth, or whoever pastes a token.

import { ApiError, problemOf, reach } from "../shared/http.js";
import { t } from "../shared/i18n.js";

const KEPT_TOKEN = "ibid.token";
const NOT_LOCAL = [403, 404, 405];

/**
 * The session that the server says is right for it. Each kind has `token()`, which may ask the person,
 * `refuse(token)` for one that the server did not take, and `asksAgain`: whether a second refusal is worth asking about.
 */
export async function openSession({ askForToken, askToSignIn }) {
  const response = await reach("/api/rag/sign-in", { headers: { Accept: "application/json" } });
  if (!response.ok) throw await problemOf(response);
  const { method, url, key } = await response.json();
  if (method === "local") return new LocalSession(askForToken);
  if (method === "supabase") return new SupabaseSession({ url, key, askToSignIn });
  return new PastedSession(askForToken);
}

/** A token that a person pasted; it lasts as long as the tab. */
class PastedSession {
  asksAgain = true;
  #refused = false;

  constructor(askForToken) {
    this.askForToken = askForToken;
  }

  async token() {
    const kept = sessionStorage.getItem(KEPT_TOKEN);
    if (kept) return kept;
    const token = await this.askForToken(this.#refused);
    sessionStorage.setItem(KEPT_TOKEN, token);
    return token;
  }

  refuse() {
    this.#refused = true;
    sessionStorage.removeItem(KEPT_TOKEN);
  }
}

/** The user of this machine; a page that is looked at from another machine has to paste a token. */
class LocalSession {
  asksAgain = false;
  #token = null;
  #pasted = null;

  constructor(askForToken) {
    this.askForToken = askForToken;
  }

  async token() {
    if (this.#pasted) return this.#pasted.token();
    if (this.#token) return this.#token;
    const response = await reach("/api/local/token", { method: "POST", headers: { Accept: "application/json" } });
    if (NOT_LOCAL.includes(response.status)) {
      this.#pasted = new PastedSession(this.askForToken);
      this.asksAgain = true;
      return this.#pasted.token();
    }
    if (!response.ok) throw await problemOf(response);
    this.#token = (await response.json()).token;
    return this.#token;
  }

  refuse() {
    this.#token = null;
    this.#pasted?.refuse();
  }
}

const KEPT_SESSION = "ibid.session";
const MARGIN_SECONDS = 30;

/** Supabase Auth, https://supabase.com/docs/guides/auth/sessions: kept in this browser, renewed before it expires. */
class SupabaseSession {
  asksAgain = false;
  canSignOut = true;

  constructor({ url, key, askToSignIn }) {
    Object.assign(this, { url, key, askToSignIn });
  }

  async token() {
    const kept = read();
    if (isFresh(kept)) return kept.access_token;
    // Each refresh token works once, so tabs take turns, and the second finds what the first has fetched.
    const renewed = await inTurn(() => this.#renew());
    return renewed ?? (await this.askToSignIn(this)).access_token;
  }

  refuse(token) {
    const kept = read();
    if (kept?.access_token === token) keep({ ...kept, expires_at: 0 });
  }

  /** Raises an ApiError whose `code` is Supabase's, like "invalid_credentials". */
  async signIn(email, password) {
    return keep(await this.#post("/token?grant_type=password", { email, password }));
  }

  /** Sends a link that leads back to this page; nobody new is signed up by it. */
  async sendLink(email) {
    const back = encodeURIComponent(location.origin + location.pathname);
    await this.#post(`/otp?redirect_to=${back}`, { email, create_user: false });
  }

  async signOut() {
    const token = read()?.access_token;
    localStorage.removeItem(KEPT_SESSION);
    if (token) await this.#post("/logout?scope=local", {}, token).catch(() => {}); // it is forgotten here whatever is said there
  }

  async #renew() {
    const kept = read();
    if (isFresh(kept)) return kept.access_token;
    if (!kept?.refresh_token) return null;
    try {
      return keep(await this.#post("/token?grant_type=refresh_token", { refresh_token: kept.refresh_token })).access_token;
    } catch (error) {
      if (error.status < 400 || error.status >= 500 || error.status === 429) throw error; // later it may still be good
      localStorage.removeItem(KEPT_SESSION);
      return null;
    }
  }

  async #post(path, body, token) {
    const headers = { apikey: this.key, "Content-Type": "application/json", Accept: "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    const response = await reach(`${this.url}/auth/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const said = await response.json().catch(() => ({}));
    if (response.ok) return said;
    throw new ApiError({
      status: response.status, code: said.error_code ?? said.error ?? "error", detail: said.msg ?? said.error_description ?? "",
    });
  }
}

/**
 * Take the session that a link from an e-mail has put into the address, and what it says when it has failed.
 * Anybody can send a link with a session of their own, so nobody's is changed by one, and it says first whose it is.
 */
export function takeFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has("access_token") && !given.has("error_description")) return "";
  history.replaceState(null, "", location.pathname + location.search);
  const [access_token, refresh_token] = [given.get("access_token"), given.get("refresh_token")];
  if (access_token && !read() && confirm(t("signIn.as", { email: emailIn(access_token) }))) {
    keep({ access_token, refresh_token, expires_in: Number(given.get("expires_in")) });
  }
  return given.get("error_description") ?? "";
}

/** The address that a token names; who may use it is for the server to say. */
function emailIn(token) {
  try {
    const claims = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(claims, (char) => char.charCodeAt(0)))).email ?? "?";
  } catch {
    return "?";
  }
}

function inTurn(work) {
  return navigator.locks ? navigator.locks.request(KEPT_SESSION, work) : work();
}

function isFresh(kept) {
  return Boolean(kept) && kept.expires_at - MARGIN_SECONDS > Date.now() / 1000;
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT_SESSION));
  } catch {
    return null;
  }
}

/** By this browser's clock, which may differ from the server's. */
function keep({ access_token, refresh_token, expires_in: lifetime, expires_at: kept }) {
  const expires_at = lifetime ? Date.now() / 1000 + lifetime : kept ?? 0;
  const session = { access_token, refresh_token, expires_at };
  localStorage.setItem(KEPT_SESSION, JSON.stringify(session));
  return session;
}
