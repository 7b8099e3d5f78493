#!/usr/bin/env node
// soniq-mcp: forwards the Model Context Protocol between a desktop assistant (standard input and output) and soniq's tool server.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import readline from 'node:readline';
import { Over, Store, ask as askServer, login, logout, renew, stale, who, word } from './login.js';

const STATELESS = '2026-07-28';
const MAX_LINE = 4 << 20;

const options = parse(process.argv.slice(2));
const key = process.env.SONIQ_API_KEY || '';
const store = key ? null : new Store(options.url); // of what a person gave
const ca = options.ca ? fs.readFileSync(options.ca) : undefined;
const agent = options.url.protocol === 'https:' ? new https.Agent({ keepAlive: true, ...(ca && { ca }) }) : new http.Agent({ keepAlive: true });

// state is what the server gave us, and to which login; opening is what the assistant opened with, to begin again when the server has forgotten us.
const state = { session: '', login: undefined, stream: null, version: '', opening: null, initialized: null, listening: false, ended: false };

function parse(args) {
  const o = { command: 'run', url: process.env.SONIQ_MCP_URL || 'http://localhost:8080/mcp/sse', readOnly: false, tools: null, ignore: null, org: '', ca: '', scopes: '', port: 0, browser: true, client: undefined };
  const list = (text) => new Set((text || '').split(',').map((s) => s.trim()).filter(Boolean));
  for (let i = 0; i < args.length; i++) {
    switch (args[i]) {
      case '--url': o.url = args[++i]; break;
      case '--read-only': o.readOnly = true; break;
      case '--tools': o.tools = list(args[++i]); break;
      case '--ignore-tools': o.ignore = list(args[++i]); break;
      case '--org': o.org = args[++i]; break;
      case '--ca': o.ca = args[++i]; break;
      case '--scopes': o.scopes = [...list((args[++i] || '').replaceAll(' ', ','))].join(' '); break;
      case '--port': o.port = Number(args[++i]); break;
      case '--client': o.client = args[++i]; break;
      case '--no-browser': o.browser = false; break;
      case 'login': case 'logout': case 'status': case 'doctor': o.command = args[i]; break;
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

const loginCommand = (more = '') => `soniq-mcp login --url ${options.url.href}${more}`;

// credential is what lets us in: the key, or what a person gave, renewed when it is about to end.
async function credential() {
  if (key) return key;
  const kept = store.read();
  if (!kept) throw new Over('nobody is logged in');
  if (!stale(kept)) return kept.access_token;
  try { return (await renew(store, kept.access_token, ca)).access_token; } catch (e) {
    if (Date.parse(kept.expires_at) > Date.now()) return kept.access_token; // good for a moment still
    throw e;
  }
}

// request sends one HTTP request and gives the answer as it begins. A token that the server does not take is renewed, once.
async function request(method, headers, body) {
  const token = await credential();
  const answer = await send(method, headers, body, token);
  if (answer.statusCode !== 401 || key) return answer;
  await text(answer);
  return send(method, headers, body, (await renew(store, token, ca)).access_token);
}

function send(method, headers, body, token) {
  return new Promise((resolve, reject) => {
    const client = options.url.protocol === 'https:' ? https : http;
    const all = { Authorization: `Bearer ${token}`, Accept: 'application/json, text/event-stream', ...headers };
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
  if (state.session && !again && message.method !== 'initialize' && store?.read() && store.read().logged_in_at !== state.login) await reopen(); // the session is of another login
  const answer = await request('POST', headersOf(message), JSON.stringify(message));
  if (answer.statusCode === 404 && state.session && !again && message.method !== 'initialize') {
    await text(answer);
    await reopen();
    return forward(message, true);
  }
  if (answer.statusCode === 202) return void (await text(answer));
  const kind = answer.headers['content-type'] || '';
  if (answer.statusCode >= 400 && !kind.startsWith('text/event-stream')) return refuse(message, answer, await text(answer));
  if (message.method === 'initialize') [state.session, state.login] = [answer.headers['mcp-session-id'] || '', store?.read()?.logged_in_at];
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
  const advice = { 401: key ? 'check SONIQ_API_KEY' : `run ${loginCommand()}`, 403: lacking(answer), 429: `wait ${answer.headers['retry-after'] || 'a few'} seconds` }[answer.statusCode];
  if (message.id === undefined) return say(why);
  write({ jsonrpc: '2.0', id: message.id, error: { code: -32000 - (answer.statusCode % 100), message: advice ? `${why}: ${advice}` : why, data: { status: answer.statusCode, code: problem.code } } });
}

// lacking says what to do about a scope that is not there: the key, or the person, has to give it.
function lacking(answer) {
  const challenge = answer.headers['www-authenticate'];
  if (!/insufficient_scope/.test(challenge || '')) return undefined;
  if (key) return 'the key in SONIQ_API_KEY lacks a scope: make one that has it';
  const how = `the person has to allow it: ${loginCommand(` --scopes "${word(challenge, 'scope').replace(/[^a-z:_ -]/g, '')}"`)}`;
  say(how);
  return how;
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

// reopen begins a session again after the server has forgotten ours, for all messages that wait for one at once.
let reopened = null;
const reopen = () => (reopened ??= reopenOnce().finally(() => { reopened = null; }));

async function reopenOnce() {
  if (!state.opening) return;
  state.session = '';
  state.stream?.destroy();
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
        state.stream = answer;
        for await (const m of events(answer)) write(m);
      }
    } catch { /* the connection broke: once more */ }
    if (!state.ended) await new Promise((done) => setTimeout(done, wait).unref());
  }
}

const trouble = (e) => e instanceof Over ? `${e.message}: run ${loginCommand()}` : e.message.includes('reached') ? e.message : `${options.url.origin} cannot be reached: ${e.message}`;

async function run() {
  if (!key && !store.read()) fail(`nobody is logged in: run ${loginCommand()}, or set SONIQ_API_KEY`);
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
      if (message.id !== undefined && message.method) write({ jsonrpc: '2.0', id: message.id, error: { code: -32001, message: trouble(e) } });
      else say(trouble(e));
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
  const meta = { 'io.modelcontextprotocol/protocolVersion': STATELESS, 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'soniq-mcp', version: '1.1.0' } };
  const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } };
  const answer = await request('POST', headersOf(message), JSON.stringify(message));
  const kind = answer.headers['content-type'] || '';
  if (kind.startsWith('text/event-stream')) for await (const m of events(answer)) if (m.id === 1) return m.result ?? Promise.reject(new Error(m.error.message));
  const body = JSON.parse(await text(answer));
  if (body.result) return body.result;
  throw new Error(body.detail || body.error?.message || `HTTP ${answer.statusCode}`);
}

const print = (line) => process.stdout.write(line + '\n');

async function logIn() {
  if (key) say('SONIQ_API_KEY is set, and used in place of a login');
  const kept = await login(options.url, new Store(options.url), { ...options, ca, tell: print }).catch((e) => fail(e.message));
  print(`Logged in to ${options.url.href} with ${kept.scope}`);
  process.exit(0);
}

async function logOut() {
  const was = await logout(new Store(options.url), ca).catch((e) => fail(e.message));
  print(was ? `Logged out of ${options.url.href}: what was given is revoked` : 'nobody was logged in');
}

// bearer says who we are for the server.
async function bearer() {
  if (key) return 'with the key in SONIQ_API_KEY';
  await credential();
  const about = await who(store.read(), ca);
  if (!about.active) throw new Over('the login is over');
  return `logged in as ${about.username || about.sub} of ${about.org_id}, with ${about.scope}; the token is renewed at ${new Date(about.exp * 1000).toISOString()}`;
}

async function status() {
  if (!key && !store.read()) fail(`nobody is logged in: run ${loginCommand()}, or set SONIQ_API_KEY`);
  const [as, { tools }] = await Promise.all([bearer(), ask('tools/list')]).catch((e) => fail(trouble(e)));
  const names = tools.filter(shown).map((t) => t.name);
  print(`${options.url.href}: ${names.length} tools, ${as}\n${names.map((n) => `  ${n}`).join('\n')}`);
  process.exit(0);
}

async function doctor() {
  let good = true;
  const check = (ok, what, fix) => { good &&= ok; process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${what}${ok ? '' : `: ${fix}`}\n`); return ok; };
  check(Number(process.versions.node.split('.')[0]) >= 18, `Node ${process.versions.node}`, 'install Node 18 or newer');
  check(options.url.protocol === 'https:' || /^(localhost|127\.|\[::1\])/.test(options.url.host), `address ${options.url.href}`, 'use https where the server is not on this machine');
  const reached = await askServer(options.url, { ca }).catch((e) => e);
  check(!(reached instanceof Error) && reached.status === 401 && word(reached.headers['www-authenticate'], 'resource_metadata') !== '', 'a tool server answers there', reached.message || `it answers HTTP ${reached.status}; is the address right?`);
  if (key) check(true, 'SONIQ_API_KEY is set');
  else if (check(Boolean(store.read()), `a person is logged in (${store.file})`, `run ${loginCommand()}, or set SONIQ_API_KEY`)) {
    check(!store.open(), 'nobody else can read that file', `chmod 600 ${store.file}`);
    const as = await bearer().catch((e) => e);
    check(!(as instanceof Error), `${as}`, as instanceof Error ? trouble(as) : '');
  }
  if (key || store.read()) {
    const found = await ask('tools/list').catch((e) => e);
    if (check(!(found instanceof Error), 'the server knows who we are', found.message)) check(found.tools.length > 0, `${found.tools.length} tools`, 'it holds no scope that a tool needs');
  }
  process.exit(good ? 0 : 1);
}

await { run, login: logIn, logout: logOut, status, doctor }[options.command]();
