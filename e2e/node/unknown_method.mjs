// Calls a method that the server does not know, in every way of the official TypeScript clients, and prints what each got as a line of JSON.
// The session must go on afterwards.
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SSEV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as StreamableV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { EmptyResultSchema } from '@modelcontextprotocol/sdk/types.js';

const url = new URL(process.argv[2]);
const headers = { Authorization: `bearer ${process.env.SONIQ_API_KEY}` };
const options = { requestInit: { headers }, eventSourceInit: { fetch: (u, o) => fetch(u, { ...o, headers: { ...o.headers, ...headers } }) } };
const ways = { 'v1 sse': SSEV1, 'v1 streamable': StreamableV1 };

for (const [way, Transport] of Object.entries(ways)) {
  const client = new ClientV1({ name: 'typescript', version: '1' });
  await client.connect(new Transport(url, options));
  let code = 0;
  try {
    await client.request({ method: 'nonsense/method', params: {} }, EmptyResultSchema);
  } catch (e) {
    code = e.code;
  }
  await client.notification({ method: 'notifications/nonsense' });
  const { tools } = await client.listTools();
  console.log(JSON.stringify({ way, code, tools: tools.length }));
  await client.close();
}
process.exit(0);
