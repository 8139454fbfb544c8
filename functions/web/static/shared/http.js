// Sends requests and turns failures into `ApiError`.

/** An error response with the server's message in `detail`; `code` is "network" if there was no response. */
export class ApiError extends Error {
  constructor({ status = 0, code = "network", title = "", detail = "", faults = [], request_id: requestId = null } = {}) {
    super(detail || title || code);
    Object.assign(this, { status, code, detail: detail || title, faults, requestId });
  }
}

export async function request(url, options) {
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
