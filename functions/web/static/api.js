// The API of this installation: bearer token, errors as `ApiError`, one sign-in at a time.

const ROOT = "/api/rag";
const ABSOLUTE = /^https?:\/\//;
const KEPT_TOKEN = "ibid.token";
const NOT_LOCAL = [403, 404, 405];

/** A refusal in the server's own words (`detail`), or `code: "network"` when nothing answered. */
export class ApiError extends Error {
  constructor({ status = 0, code = "network", title = "", detail = "", faults = [], request_id: requestId = null } = {}) {
    super(detail || title || code);
    Object.assign(this, { status, code, detail: detail || title, faults, requestId });
  }
}

export class Api {
  #token = sessionStorage.getItem(KEPT_TOKEN);
  #signingIn = null;
  #local = false;

  /** `askForToken(refused)` resolves to what the person pasted; `language()` is the page's language. */
  constructor({ askForToken, language }) {
    this.askForToken = askForToken;
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

  /** A successful response, or an ApiError. `path` is below /api/rag, or a whole URL. A refused token is renewed once; a pasted one is asked for again. */
  async call(method, path, { body, query, signal, accept } = {}) {
    for (let attempt = 0; ; attempt += 1) {
      if (!this.#token) await this.#signIn(attempt > 0);
      const used = this.#token;
      const response = await this.#send(method, path, { body, query, signal, accept });
      if (response.ok) return response;
      if (response.status !== 401 || (this.#local && attempt > 0)) throw await problemOf(response);
      if (this.#token === used) this.#forget();
    }
  }

  #forget() {
    this.#token = null;
    sessionStorage.removeItem(KEPT_TOKEN);
  }

  #signIn(refused) {
    this.#signingIn ??= this.#obtainToken(refused).finally(() => (this.#signingIn = null));
    return this.#signingIn;
  }

  async #obtainToken(refused) {
    const response = await reach("/api/local/token", { method: "POST", headers: { Accept: "application/json" } });
    this.#local = response.ok;
    if (response.ok) {
      this.#token = (await response.json()).token;
    } else if (NOT_LOCAL.includes(response.status)) {
      this.#token = await this.askForToken(refused);
      sessionStorage.setItem(KEPT_TOKEN, this.#token);
    } else {
      throw await problemOf(response);
    }
  }

  #send(method, path, { body, query, signal, accept }) {
    const url = new URL(ABSOLUTE.test(path) ? path : ROOT + path, location.origin);
    for (const [key, value] of Object.entries(query ?? {})) {
      if (value !== null && value !== undefined && value !== "") url.searchParams.set(key, value);
    }
    const headers = {
      Authorization: `Bearer ${this.#token}`,
      Accept: accept ?? "application/json",
      "Accept-Language": this.language(),
    };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return reach(url, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  }
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError();
  }
}

/** The error a response carries, also when it is not problem+json (a gateway's own page, say). */
async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return new ApiError({ code: "error", detail: problem.message, ...problem, status: response.status });
}
