// Reads server-sent events from a byte stream that may be split anywhere: inside a line, or between CR and LF.

export class EventStreamParser {
  #line = "";
  #data = [];
  #event = "";
  #afterCarriageReturn = false;
  #started = false;

  /** Take the next piece of text; return the events it completes, as `{event, data}`. */
  push(text) {
    if (!text) return [];
    const events = [];
    let rest = text;
    if (!this.#started) {
      this.#started = true;
      if (rest.startsWith("\uFEFF")) rest = rest.slice(1);
    }
    if (this.#afterCarriageReturn && rest.startsWith("\n")) rest = rest.slice(1);
    let from = 0;
    for (const end of rest.matchAll(/\r\n|\r|\n/g)) {
      const line = this.#line + rest.slice(from, end.index);
      this.#line = "";
      from = end.index + end[0].length;
      const event = this.#take(line);
      if (event) events.push(event);
    }
    this.#line += rest.slice(from);
    this.#afterCarriageReturn = text.endsWith("\r");
    return events;
  }

  #take(line) {
    if (line === "") return this.#dispatch();
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    return null;
  }

  #dispatch() {
    const event = this.#data.length ? { event: this.#event || "message", data: this.#data.join("\n") } : null;
    this.#data = [];
    this.#event = "";
    return event;
  }
}

/** The events of a fetch response body, as they arrive. */
export async function* readEvents(body) {
  const parser = new EventStreamParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
