// Calls the API of this installation as the signed-in user.

import { readError, request } from "./http.js";

const ROOT = "/api/rag";
const ABSOLUTE = /^https?:\/\//;

export class Api {
  #session = null;
  #token = null;

  /** `openSession()` resolves to a session (see session/session.js); `language()` returns the language of the page. */
  constructor({ openSession, language }) {
    this.openSession = openSession;
    this.language = language;
  }

  async get(path, query, options) {
    return (await this.call("GET", path, { query, ...options })).json();
  }

  async post(path, body, options) {
    return (await this.call("POST", path, { body, ...options })).json();
  }

  async put(path, body) {
    return (await this.call("PUT", path, { body })).json();
  }

  async patch(path, body) {
    return (await this.call("PATCH", path, { body })).json();
  }

  async delete(path) {
    const response = await this.call("DELETE", path);
    return response.status === 204 ? null : response.json();
  }

  /**
   * Resolves to a successful response, or rejects with an ApiError. `path` is below /api/rag, or an absolute URL.
   * A rejected token is renewed once; a pasted one is asked for again.
   */
  async call(method, path, { body, query, signal, accept } = {}) {
    for (let attempt = 0; ; attempt += 1) {
      const token = await this.#obtainToken();
      const response = await this.#send(method, path, { token, body, query, signal, accept });
      if (response.ok) return response;
      if (response.status !== 401 || (attempt > 0 && !this.#session.canAskAgain)) throw await readError(response);
      if (this.#token === token) {
        this.#token = null;
        this.#session.reject(token);
      }
    }
  }

  /** The header with which a request outside /api/rag is the user's. */
  async authorization() {
    return { Authorization: `Bearer ${await this.#obtainToken()}` };
  }

  get canSignOut() {
    return Boolean(this.#session?.canSignOut);
  }

  async signOut() {
    await this.#session.signOut();
  }

  /** Only one sign-in runs at a time; other requests wait for it. */
  #obtainToken() {
    this.signingIn ??= this.#signIn().finally(() => (this.signingIn = null));
    return this.signingIn;
  }

  async #signIn() {
    this.#session ??= await this.openSession();
    this.#token = await this.#session.token();
    return this.#token;
  }

  #send(method, path, { token, body, query, signal, accept }) {
    const url = new URL(ABSOLUTE.test(path) ? path : ROOT + path, location.origin);
    for (const [key, value] of Object.entries(query ?? {})) {
      for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") url.searchParams.append(key, one);
    }
    const headers = {
      Authorization: `Bearer ${token}`,
      Accept: accept ?? "application/json",
      "Accept-Language": this.language(),
    };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return request(url, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  }
}
