// Requests, and errors as `ApiError`.

/** A refusal in the server's own words (`detail`), or `code: "network"` when nothing answered. */
export class ApiError extends Error {
  constructor({ status = 0, code = "network", title = "", detail = "", faults = [], request_id: requestId = null } = {}) {
    super(detail || title || code);
    Object.assign(this, { status, code, detail: detail || title, faults, requestId });
  }
}

export async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError();
  }
}

/** The error a response carries, also when it is not problem+json (a gateway's own page, say). */
export async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return new ApiError({ code: "error", detail: problem.message, ...problem, status: response.status });
}
