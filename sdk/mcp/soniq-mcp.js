#!/usr/bin/env node
// soniq-mcp: forwards the Model Context Protocol between a desktop assistant (standard input and output) and soniq's tool server.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import readline from 'node:readline';

const STATELESS = '2026-07-28';
const MAX_LINE = 4 << 20;

const options = parse(process.argv.slice(2));
const key = process.env.SONIQ_API_KEY || '';
const agentOptions = options.ca ? { ca: fs.readFileSync(options.ca) } : {};
const agent = options.url.protocol === 'https:' ? new https.Agent({ keepAlive: true, ...agentOptions }) : new http.Agent({ keepAlive: true });

// state is what the server gave us; opening is what the assistant opened with, to begin again when the server has forgotten us.
const state = { session: '', version: '', opening: null, initialized: null, listening: false, ended: false };

function parse(args) {
  const o = { command: 'run', url: process.env.SONIQ_MCP_URL || 'http://localhost:8080/mcp/sse', readOnly: false, tools: null, ignore: null, org: '', ca: '' };
  const list = (text) => new Set((text || '').split(',').map((s) => s.trim()).filter(Boolean));
  for (let i = 0; i < args.length; i++) {
    switch (args[i]) {
      case '--url': o.url = args[++i]; break;
      case '--read-only': o.readOnly = true; break;
      case '--tools': o.tools = list(args[++i]); break;
      case '--ignore-tools': o.ignore = list(args[++i]); break;
      case '--org': o.org = args[++i]; break;
      case '--ca': o.ca = args[++i]; break;
      case 'status': case 'doctor': o.command = args[i]; break;
      default: fail(`there is no option ${args[i]}; see README.md`);
    }
  }
  try { o.url = new URL(o.url); } catch { fail(`--url ${o.url} is not an address`); }
  return o;
}

function fail(text) {
  process.stderr.write(`soniq-mcp: ${text}\n`);
  process.exit(2);
}

const say = (text) => process.stderr.write(`soniq-mcp: ${text}\n`);
const write = (message) => process.stdout.write(JSON.stringify(message) + '\n');

// request sends one HTTP request and gives the answer as it begins.
function request(method, headers, body) {
  return new Promise((resolve, reject) => {
    const client = options.url.protocol === 'https:' ? https : http;
    const all = { Authorization: `Bearer ${key}`, Accept: 'application/json, text/event-stream', ...headers };
    if (options.org) all['On-Behalf-Of'] = options.org;
    if (body) Object.assign(all, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    const r = client.request(options.url, { method, headers: all, agent }, resolve);
    r.on('error', reject);
    r.end(body);
  });
}

async function text(answer) {
  let all = '';
  answer.setEncoding('utf8');
  for await (const part of answer) all += part;
  return all;
}

// events reads the messages of a stream of server-sent events.
async function* events(answer) {
  let rest = '', data = [];
  answer.setEncoding('utf8');
  for await (const part of answer) {
    const lines = (rest + part).split(/\r\n|\r|\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '' && data.length) {
        const whole = data.join('\n');
        data = [];
        if (whole) yield JSON.parse(whole);
      } else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }
}

// headersOf are those a message travels with, by the revision it is of.
function headersOf(message) {
  const version = message.params?._meta?.['io.modelcontextprotocol/protocolVersion'];
  if (version >= STATELESS) {
    const h = { 'MCP-Protocol-Version': version, 'Mcp-Method': message.method };
    const name = message.params.name ?? message.params.uri;
    if (name) h['Mcp-Name'] = /^[\x21-\x7e]*$/.test(name) ? name : `=?base64?${Buffer.from(name).toString('base64')}?=`;
    return h;
  }
  const h = {};
  if (state.session && message.method !== 'initialize') h['Mcp-Session-Id'] = state.session;
  if (state.version && message.method !== 'initialize') h['MCP-Protocol-Version'] = state.version;
  return h;
}

// forward sends a message of the assistant and hands it what is answered.
async function forward(message, again = false) {
  if (!allowed(message)) return;
  const answer = await request('POST', headersOf(message), JSON.stringify(message));
  if (answer.statusCode === 404 && state.session && !again && message.method !== 'initialize') {
    await text(answer);
    await reopen();
    return forward(message, true);
  }
  if (answer.statusCode === 202) return void (await text(answer));
  const kind = answer.headers['content-type'] || '';
  if (answer.statusCode >= 400 && !kind.startsWith('text/event-stream')) return refuse(message, answer, await text(answer));
  if (message.method === 'initialize') state.session = answer.headers['mcp-session-id'] || '';
  if (kind.startsWith('text/event-stream')) {
    for await (const m of events(answer)) deliver(message, m);
  } else deliver(message, JSON.parse(await text(answer)));
  if (message.method === 'notifications/initialized') listen();
}

// deliver hands a message of the server to the assistant.
function deliver(question, message) {
  if (question.method === 'initialize' && message.result) {
    state.version = message.result.protocolVersion;
    if (state.reopening) return;
  }
  if (question.method === 'tools/list' && message.id === question.id && message.result?.tools) message.result.tools = message.result.tools.filter(shown);
  write(message);
}

// refuse turns an answer of HTTP into one the assistant understands.
function refuse(message, answer, body) {
  let problem = {};
  try { problem = JSON.parse(body); } catch { /* not ours */ }
  if (problem.jsonrpc) return write(problem);
  const why = problem.detail || problem.title || body.slice(0, 200) || `HTTP ${answer.statusCode}`;
  const advice = { 401: 'check SONIQ_API_KEY', 403: 'the key lacks a scope', 429: `wait ${answer.headers['retry-after'] || 'a few'} seconds` }[answer.statusCode];
  if (message.id === undefined) return say(why);
  write({ jsonrpc: '2.0', id: message.id, error: { code: -32000 - (answer.statusCode % 100), message: advice ? `${why}: ${advice}` : why, data: { status: answer.statusCode, code: problem.code } } });
}

const shown = (tool) => !(options.tools && !options.tools.has(tool.name)) && !options.ignore?.has(tool.name) && !(options.readOnly && !tool.annotations?.readOnlyHint);

// allowed refuses tools that the command line left out.
function allowed(message) {
  if (message.method !== 'tools/call' || !(options.readOnly || options.tools || options.ignore)) return true;
  const name = message.params?.name;
  const reads = !/^(make|add|create|update|remove|allocate|monitor)_/.test(name);
  if (shown({ name, annotations: { readOnlyHint: reads } })) return true;
  write({ jsonrpc: '2.0', id: message.id, error: { code: -32602, message: `${name} is switched off for this assistant` } });
  return false;
}

// reopen begins a session again after the server has forgotten ours.
async function reopen() {
  if (!state.opening) return;
  state.session = '';
  state.reopening = true;
  try {
    await forward(state.opening, true);
    if (state.initialized) await forward(state.initialized, true);
  } finally { state.reopening = false; }
}

// listen opens the stream on which the server asks and tells by itself, again and again.
async function listen() {
  if (state.listening || !state.session) return;
  state.listening = true;
  for (let wait = 500; !state.ended; wait = Math.min(wait * 2, 30_000)) {
    try {
      const answer = await request('GET', { Accept: 'text/event-stream', 'Mcp-Session-Id': state.session, 'MCP-Protocol-Version': state.version });
      if (answer.statusCode !== 200) { answer.resume(); if (answer.statusCode === 405) break; } else {
        wait = 500;
        for await (const m of events(answer)) write(m);
      }
    } catch { /* the connection broke: once more */ }
    if (!state.ended) await new Promise((done) => setTimeout(done, wait).unref());
  }
}

async function run() {
  if (!key) fail('SONIQ_API_KEY is not set: make a key with soniq key create, or POST /api-keys');
  const under = new Set();
  const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity });
  for await (const line of lines) {
    if (!line.trim()) continue;
    let message;
    try { if (line.length > MAX_LINE) throw new Error('too long'); message = JSON.parse(line); } catch {
      write({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'not a JSON message' } });
      continue;
    }
    if (message.method === 'initialize') state.opening = message;
    if (message.method === 'notifications/initialized') state.initialized = message;
    const going = forward(message).catch((e) => {
      if (message.id !== undefined && message.method) write({ jsonrpc: '2.0', id: message.id, error: { code: -32001, message: `${options.url.origin} cannot be reached: ${e.message}` } });
      else say(e.message);
    }).finally(() => under.delete(going));
    under.add(going);
    if (message.method === 'initialize' || message.method === 'notifications/initialized') await going; // the rest needs the session
  }
  await Promise.allSettled(under);
  state.ended = true;
  if (state.session) await request('DELETE', { 'Mcp-Session-Id': state.session }).then((a) => a.resume(), () => {});
  process.exit(0);
}

// ask sends one message without a session and gives its result.
async function ask(method, params = {}) {
  const meta = { 'io.modelcontextprotocol/protocolVersion': STATELESS, 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'soniq-mcp', version: '1.0.0' } };
  const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } };
  const answer = await request('POST', headersOf(message), JSON.stringify(message));
  const kind = answer.headers['content-type'] || '';
  if (kind.startsWith('text/event-stream')) for await (const m of events(answer)) if (m.id === 1) return m.result ?? Promise.reject(new Error(m.error.message));
  const body = JSON.parse(await text(answer));
  if (body.result) return body.result;
  throw new Error(body.detail || body.error?.message || `HTTP ${answer.statusCode}`);
}

async function status() {
  if (!key) fail('SONIQ_API_KEY is not set');
  const { tools } = await ask('tools/list').catch((e) => fail(e.message));
  const names = tools.filter(shown).map((t) => t.name);
  process.stdout.write(`${options.url.href}: ${names.length} tools\n${names.map((n) => `  ${n}\n`).join('')}`);
}

async function doctor() {
  let good = true;
  const check = (ok, what, fix) => { good &&= ok; process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${what}${ok ? '' : `: ${fix}`}\n`); return ok; };
  check(Number(process.versions.node.split('.')[0]) >= 18, `Node ${process.versions.node}`, 'install Node 18 or newer');
  check(options.url.protocol === 'https:' || /^(localhost|127\.|\[::1\])/.test(options.url.host), `address ${options.url.href}`, 'use https where the server is not on this machine');
  if (check(Boolean(key), 'SONIQ_API_KEY is set', 'make a key with soniq key create')) {
    const found = await ask('tools/list').catch((e) => e);
    if (check(!(found instanceof Error), 'the server answers and knows the key', found.message)) check(found.tools.length > 0, `${found.tools.length} tools`, 'the key holds no scope that a tool needs');
  }
  process.exit(good ? 0 : 1);
}

await { run, status, doctor }[options.command]();
