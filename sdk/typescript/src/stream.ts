/** An event of the stream. */
export interface StreamedEvent {
  /** Its sequence in the organisation; begin behind it with after. */
  id: string;
  /** Such as "call.answered". */
  event: string;
  data: Record<string, unknown>;
}

/** A stream's text event: its id, kind and data as written. */
export interface RawEvent { id: string; event: string; data: string }

/** Reads server-sent events from a body until it ends. An id without data is reported with event "". */
export async function* readEvents(body: ReadableStream<Uint8Array>, heard: () => void = () => undefined): AsyncGenerator<RawEvent> {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = "", event = "", id = "", data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (id || data.length > 0) yield { id, event: data.length > 0 ? event || "message" : "", data: data.join("\n") };
          event = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") event = text;
        else if (field === "id") id = text;
        else if (field === "data") data.push(text);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
