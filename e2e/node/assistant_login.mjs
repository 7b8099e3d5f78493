// Logs a person in with the official TypeScript clients, in every way they know: prints where to send the person ({"open": …}), reads from
// standard input where they were led to, and prints what the client then found as a line of JSON.
import { createInterface } from 'node:readline';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SSEV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as StreamableV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as StreamableV2, SSEClientTransport as SSEV2 } from '@modelcontextprotocol/client';

const url = new URL(process.argv[2]);
const info = { name: 'typescript', version: '1' };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Person keeps what the client is given, and knows no client id: the client registers itself.
class Person {
  redirectUrl = 'http://127.0.0.1:45321/callback';
  clientMetadata = {
    client_name: 'typescript', redirect_uris: [this.redirectUrl], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none',
  };
  state() { return (this.sent = crypto.randomUUID()); }
  clientInformation() { return this.client; }
  saveClientInformation(c) { this.client = c; }
  tokens() { return this.kept; }
  saveTokens(t) { this.kept = t; }
  saveCodeVerifier(v) { this.verifier = v; }
  codeVerifier() { return this.verifier; }
  redirectToAuthorization(u) { console.log(JSON.stringify({ open: u.href })); }
}

const ways = {
  'v1 sse': (o) => [new ClientV1(info), new SSEV1(url, o)],
  'v1 streamable': (o) => [new ClientV1(info), new StreamableV1(url, o)],
  'v2 sse': (o) => [new ClientV2(info), new SSEV2(url, o)],
  'v2 streamable': (o) => [new ClientV2(info), new StreamableV2(url, o)],
  'v2 auto': (o) => [new ClientV2(info, { versionNegotiation: { mode: 'auto' } }), new StreamableV2(url, o)],
};

for (const [way, make] of Object.entries(ways)) {
  const authProvider = new Person();
  const [stranger, first] = make({ authProvider });
  let refused = false;
  await stranger.connect(first).catch((e) => { if (e.constructor.name !== 'UnauthorizedError') throw e; refused = true; });
  const back = new URL((await lines.next()).value).searchParams;
  if (back.get('state') !== authProvider.sent) throw new Error('another state');
  await (way.startsWith('v1') ? first.finishAuth(back.get('code')) : first.finishAuth(back));
  const [client, transport] = make({ authProvider });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const live = await client.callTool({ name: 'get_live_calls', arguments: {} });
  console.log(JSON.stringify({ way, refused, tools: tools.map((t) => t.name), live: live.structuredContent }));
  await client.close();
}
process.exit(0);
