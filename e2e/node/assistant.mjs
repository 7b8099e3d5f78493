// Connects to the tool server with the official TypeScript clients, in every way they know, and prints what each found as a line of JSON.
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SSEV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as StreamableV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as StreamableV2, SSEClientTransport as SSEV2 } from '@modelcontextprotocol/client';

const url = new URL(process.argv[2]);
const headers = { Authorization: `Bearer ${process.env.SONIQ_API_KEY}` };
const options = { requestInit: { headers }, eventSourceInit: { fetch: (u, o) => fetch(u, { ...o, headers: { ...o.headers, ...headers } }) } };
const info = { name: 'typescript', version: '1' };

const ways = {
  'v1 sse': () => [new ClientV1(info), new SSEV1(url, options)],
  'v1 streamable': () => [new ClientV1(info), new StreamableV1(url, options)],
  'v2 sse': () => [new ClientV2(info), new SSEV2(url, options)],
  'v2 streamable': () => [new ClientV2(info), new StreamableV2(url, options)],
  'v2 auto': () => [new ClientV2(info, { versionNegotiation: { mode: 'auto' } }), new StreamableV2(url, options)],
};

for (const [way, make] of Object.entries(ways)) {
  const [client, transport] = make();
  await client.connect(transport);
  const { tools } = await client.listTools();
  const live = await client.callTool({ name: 'get_live_calls', arguments: {} });
  const wrong = await client.callTool({ name: 'get_call_detail', arguments: { call_id: 'call_none' } });
  console.log(JSON.stringify({ way, tools: tools.length, live: live.structuredContent, wrong: wrong.isError }));
  await client.close();
}
process.exit(0);
