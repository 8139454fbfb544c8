// Sends requests and turns failures into `ApiError`.

import { mayTryAgain } from "../loading/attempts.js";

/** An error response with the server's message in `detail`; `code` is "network" if there was no response. */
export class ApiError extends Error {
  constructor({ status = 0, code = "network", title = "", detail = "", faults = [], request_id: requestId = null } = {}) {
    super(detail || title || code);
    Object.assign(this, { status, code, detail: detail || title, faults, requestId });
  }
}

/** Sends a request. One that only reads is repeated when the platform is too busy to pass it on. */
export async function request(url, options = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const response = await send(url, options);
    if ((options.method ?? "GET") !== "GET" || !isThrottled(response) || !(await mayTryAgain(attempt))) return response;
  }
}

/** A 429 or 503 of the gateway; our own are problem documents, and say what is wrong. */
const isThrottled = ({ status, headers }) => (status === 429 || status === 503) && !headers.get("Content-Type")?.startsWith("application/problem+json");

async function send(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError();
  }
}

/** The error in a response, even if it is not problem+json (for example the error page of a gateway). */
export async function readError(response) {
  const problem = await response.json().catch(() => ({}));
  return new ApiError({ code: "error", detail: problem.message, ...problem, status: response.status });
}
