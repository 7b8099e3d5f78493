// What a developer writes: it uses the package as installed from its tarball, and is checked by the compiler in strict mode.
import { Soniq, SoniqError, verifyServiceSignature, verifyWebhook, WebhookError, type Schema } from "@soniq/sdk";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

function need(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function claim(what: string, holds: boolean): void {
  if (!holds) throw new Error(`not so: ${what}`);
  console.log(`so it is: ${what}`);
}

async function refused(what: string, asked: Promise<unknown>): Promise<SoniqError> {
  try {
    await asked;
  } catch (e) {
    if (e instanceof SoniqError) return e;
    throw e;
  }
  throw new Error(`${what} was not refused`);
}

const soniq = new Soniq({ baseUrl: need("SONIQ_URL"), apiKey: need("SONIQ_KEY") });

// refusals are typed
const invalid = await refused("a call to nowhere", soniq.request("calls.create", { body: { to: "" } }));
claim(`a refusal has its code and violations: ${invalid.message}`, invalid.status === 422 && invalid.violations.length > 0 && invalid.requestId !== undefined);
const missing = await refused("no such user", soniq.request("users.get", { path: { id: "usr_none" } }));
claim("a missing record is not_found", missing.code === "not_found");
const stranger = new Soniq({ baseUrl: need("SONIQ_URL"), apiKey: "soniq_live_wrong" });
claim("a wrong key is unauthenticated", (await refused("a wrong key", stranger.request("me.get"))).code === "unauthenticated");

// a request whose answer is lost is repeated with the same key, and has one effect
let lost = 0;
const shaky = new Soniq({ baseUrl: need("SONIQ_URL"), apiKey: need("SONIQ_KEY"), fetch: async (...a) => {
  const answer = await fetch(...a);
  if (lost++ === 0) throw new TypeError("the connection was lost");
  return answer;
} });
const tag = await shaky.request("tags.create", { body: { name: "once" } });
claim("the first answer came after the second try", lost === 2 && tag.name === "once");

// lists are read to their end
for (let i = 0; i < 5; i++) await soniq.request("tags.create", { body: { name: `tag ${i}` } });
const names: string[] = [];
for await (const t of soniq.list("tags.list", { query: { limit: 2 } })) names.push(t.name);
claim(`all tags in pages of two: ${names.join(", ")}`, names.length === 6 && new Set(names).size === 6);

// webhooks
type Told = { headers: IncomingHttpHeaders; body: string };
let tell: (told: Told) => void = () => undefined;
const told = new Promise<Told>((resolve) => { tell = resolve; });
const receiver = createServer((q, r) => {
  let body = "";
  q.setEncoding("utf8").on("data", (part: string) => { body += part; }).on("end", () => { r.end(); tell({ headers: q.headers, body }); });
}).listen(0, "127.0.0.1");
await new Promise((resolve) => receiver.once("listening", resolve));
const hook = await soniq.request("webhooks.create", { body: { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`, events: ["call.ended"] } });

// a call, followed by its events, with a connection that is lost on the way
let cut = 0;
const follower = new Soniq({ baseUrl: need("SONIQ_URL"), apiKey: need("SONIQ_KEY"), fetch: async (input, init) => {
  const answer = await fetch(input, init);
  if (!String(input).includes("/events/stream") || cut++ > 0 || !answer.body) return answer;
  return new Response(answer.body.pipeThrough(cutAfter("call.answered")), answer);
} });

/** Breaks the connection once it carried a word. */
function cutAfter(word: string): TransformStream<Uint8Array, Uint8Array> {
  let seen = "";
  return new TransformStream({ transform(chunk, to) {
    seen += new TextDecoder().decode(chunk);
    to.enqueue(chunk);
    if (seen.includes(word) && seen.endsWith("\n\n")) to.terminate();
  } });
}

let call: Schema<"Call"> | undefined;
const kinds: string[] = [], whole: string[] = [], ids: string[] = [];
const before = await soniq.request("events.list", { query: { limit: 1 } });
claim("the log of events can be read", Array.isArray(before.data));
const started = soniq.request("calls.create", { body: { to: `ext:${need("CALLED")}`, user_id: need("CALLER"), metadata: { order: "7" } } });
for await (const e of follower.events({ after: "0", signal: AbortSignal.timeout(40_000) })) {
  if (typeof e.data["call_id"] !== "string" && !e.event.startsWith("call.")) continue;
  kinds.push(e.event);
  whole.push(JSON.stringify(e));
  ids.push(e.id);
  if (e.event === "call.answered") {
    call = await started;
    await soniq.request("calls.end", { path: { id: call.id }, body: { reason: "enough" } });
  }
  if (e.event === "call.ended") break;
}
if (!call) throw new Error(`the call was never answered: ${whole.join(" ")}`);
const id = call.id;
claim(`events came in order: ${kinds.join(" ")}`, kinds.includes("call.started") && kinds.at(-1) === "call.ended");
claim("the stream was taken up again without one missing or twice", cut > 1 && new Set(ids).size === ids.length);

const records: Schema<"CallCDR">[] = [];
for await (const c of soniq.list("cdr.list")) records.push(c);
claim("the call detail record is that of the call", records.length === 1 && records[0]?.call_id === id && records[0].metadata?.["order"] === "7");

const delivery = await told;
const event = await verifyWebhook(hook.secret ?? "", delivery.headers, delivery.body);
claim("the webhook is verified and typed", event.event === "call.ended" && event.data.call_id === id);
claim("by its own signature too", (await verifyServiceSignature(hook.secret ?? "", delivery.headers, delivery.body)).event === "call.ended");
for (const [what, check] of [
  ["another body", () => verifyWebhook(hook.secret ?? "", delivery.headers, delivery.body + " ")],
  ["another secret", () => verifyWebhook("whsec_b3RoZXI=", delivery.headers, delivery.body)],
  ["an old delivery", () => verifyWebhook(hook.secret ?? "", delivery.headers, delivery.body, { now: new Date(Date.now() + 600_000) })],
  ["another body, by its own signature", () => verifyServiceSignature(hook.secret ?? "", delivery.headers, delivery.body + " ")],
] as const) {
  claim(`${what} is refused`, await check().then(() => false, (e: unknown) => e instanceof WebhookError));
}
receiver.closeAllConnections();
receiver.close();
console.log("the end");
