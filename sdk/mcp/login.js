// How soniq-mcp is let in by a person: with a browser, by OAuth 2.1 with PKCE and a redirect to this machine (RFC 8252). What it is given is
// kept in a file that only its owner reads, the same for soniq mcp, renewed when it is over, and given back by logout.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { spawn } from 'node:child_process';

const CLIENT = 'soniq-assistant';
const MOST = 1 << 20; // bytes of an answer
const PATIENCE = 20_000; // for one answer of the server, in ms
const LOGIN_TIME = 10 * 60_000; // for the person
const EARLY = 60_000; // before its end a token is renewed
const ABANDONED = 60_000; // age of a lock whose holder is gone

// Over says that the person has to log in again.
export class Over extends Error {}

const loopback = (host) => host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);

// trusted reads an address that may be sent secrets to: https, or this machine.
export function trusted(text, what) {
  let u;
  try { u = new URL(text); } catch { throw new Error(`${what} ${text} is not an address`); }
  if (u.protocol !== 'https:' && !(u.protocol === 'http:' && loopback(u.hostname))) throw new Error(`${what} ${text} is neither https nor on this machine`);
  return u;
}

// same compares addresses of a server; the names of this machine are alike.
function same(a, b) {
  const plain = (t) => { const u = new URL(t); return (loopback(u.hostname) ? `${u.protocol}//loopback:${u.port}` : u.origin) + u.pathname.replace(/\/+$/, ''); };
  try { return plain(a) === plain(b); } catch { return false; }
}

// ask sends a request, follows no redirect, and reads the answer.
export function ask(to, { method = 'GET', form, headers = {}, ca } = {}) {
  return new Promise((resolve, reject) => {
    const body = form && new URLSearchParams(form).toString();
    const secure = to.protocol === 'https:';
    const all = { Accept: 'application/json', ...headers, ...(body && { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': Buffer.byteLength(body) }) };
    const r = (secure ? https : http).request(to, { method, headers: all, timeout: PATIENCE, ...(secure && ca && { ca }) }, (answer) => {
      const parts = [];
      let size = 0;
      answer.on('data', (part) => { if ((size += part.length) > MOST) r.destroy(new Error('the answer is too long')); else parts.push(part); });
      answer.on('error', reject);
      answer.on('end', () => {
        let json = {};
        try { json = JSON.parse(Buffer.concat(parts).toString('utf8')) ?? {}; } catch { /* none */ }
        resolve({ status: answer.statusCode, headers: answer.headers, json });
      });
    });
    r.on('timeout', () => r.destroy(new Error(`no answer within ${PATIENCE / 1000} s`)));
    r.on('error', (e) => reject(new Error(`${to.origin} cannot be reached: ${e.message || e.code}`)));
    r.end(body);
  });
}

// word is a parameter of a WWW-Authenticate header.
export const word = (header, name) => new RegExp(`[ ,]${name}="([^"]*)"`).exec(header || '')?.[1] || '';

// discover finds out who gives tokens for the tool server, and what to ask for (RFC 9728, RFC 8414).
export async function discover(url, ca) {
  trusted(url.href, '--url');
  const asked = await ask(url, { ca });
  const challenge = asked.headers['www-authenticate'];
  const described = word(challenge, 'resource_metadata') || `${url.origin}/.well-known/oauth-protected-resource${url.pathname}`;
  const resource = await ask(trusted(described, 'the description of the server'), { ca });
  if (resource.status !== 200 || !Array.isArray(resource.json.authorization_servers) || !resource.json.authorization_servers.length) throw new Error(`${url.href} does not say who lets people in (HTTP ${resource.status})`);
  if (!same(resource.json.resource, url.href)) throw new Error(`the server calls itself ${resource.json.resource}: give that as --url`);
  const issuer = trusted(resource.json.authorization_servers[0], 'the issuer');
  const way = issuer.pathname.replace(/\/+$/, '');
  let server;
  for (const at of [`${issuer.origin}/.well-known/oauth-authorization-server${way}`, `${issuer.origin}${way}/.well-known/oauth-authorization-server`]) {
    server = await ask(new URL(at), { ca });
    if (server.status === 200) break;
  }
  const m = server.json;
  if (server.status !== 200 || m.issuer !== resource.json.authorization_servers[0]) throw new Error(`${issuer.href} does not describe itself as it is called`);
  if (!m.code_challenge_methods_supported?.includes('S256')) throw new Error(`${issuer.href} does not know PKCE (S256)`);
  for (const name of ['authorization_endpoint', 'token_endpoint', 'revocation_endpoint']) trusted(m[name], name);
  return { resource: resource.json.resource, scope: word(challenge, 'scope'), server: m };
}

// A Store keeps what a person gave for one server.
export class Store {
  constructor(url) {
    const name = url.host.replace(/[^a-zA-Z0-9.-]/g, '_') + '-' + crypto.createHash('sha256').update(url.href).digest('hex').slice(0, 12);
    this.file = path.join(Store.folder(), `${name}.json`);
    this.seen = '';
    this.kept = null;
  }

  static folder() {
    const home = process.platform === 'win32' ? process.env.APPDATA || path.join(os.homedir(), 'AppData', 'Roaming') : process.env.XDG_CONFIG_HOME || path.join(os.homedir(), '.config');
    return process.env.SONIQ_MCP_HOME || path.join(home, 'soniq', 'mcp');
  }

  // read gives what is kept, null where nothing is. The file is read again only when it has changed.
  read() {
    let s;
    try { s = fs.statSync(this.file); } catch (e) { if (e.code !== 'ENOENT') throw e; this.seen = ''; return (this.kept = null); }
    const seen = `${s.ino} ${s.mtimeMs} ${s.size}`;
    if (seen === this.seen) return this.kept;
    let kept = null;
    try { kept = JSON.parse(fs.readFileSync(this.file, 'utf8')); } catch { /* broken: as if it were not there */ }
    this.seen = seen;
    return (this.kept = kept?.access_token && kept?.refresh_token ? kept : null);
  }

  write(kept) {
    fs.mkdirSync(path.dirname(this.file), { recursive: true, mode: 0o700 });
    const next = `${this.file}.${process.pid}.${crypto.randomBytes(4).toString('hex')}`;
    const f = fs.openSync(next, 'wx', 0o600);
    try { fs.writeSync(f, JSON.stringify(kept, null, 1) + '\n'); fs.fsyncSync(f); } finally { fs.closeSync(f); }
    fs.renameSync(next, this.file);
    this.seen = '';
  }

  forget() { fs.rmSync(this.file, { force: true }); this.seen = ''; }

  // open reports whether others on this machine can read the file.
  open() {
    if (process.platform === 'win32') return false;
    try { return (fs.statSync(this.file).mode & 0o077) !== 0; } catch { return false; }
  }

  // locked does something while no other bridge, of either kind, changes the file.
  async locked(what) {
    fs.mkdirSync(path.dirname(this.file), { recursive: true, mode: 0o700 });
    const lock = `${this.file}.lock`, mark = crypto.randomBytes(12).toString('hex');
    const end = Date.now() + 2 * ABANDONED;
    for (;;) {
      try { fs.writeFileSync(lock, mark, { flag: 'wx', mode: 0o600 }); break; } catch (e) { if (e.code !== 'EEXIST') throw e; }
      if (Date.now() > end) throw new Error(`${lock} is held by another program`);
      breakAbandoned(lock, mark);
      await new Promise((done) => setTimeout(done, 25 + Math.random() * 50));
    }
    try { return await what(); } finally {
      try { if (fs.readFileSync(lock, 'utf8') === mark) fs.rmSync(lock); } catch { /* taken away */ }
    }
  }
}

// breakAbandoned takes away a lock whose holder ended without doing so. A lock that is new by then is put back.
function breakAbandoned(lock, mark) {
  try {
    if (Date.now() - fs.statSync(lock).mtimeMs < ABANDONED) return;
    const old = fs.readFileSync(lock, 'utf8');
    const aside = `${lock}.${mark}`;
    fs.renameSync(lock, aside);
    if (fs.readFileSync(aside, 'utf8') !== old) fs.linkSync(aside, lock);
    fs.rmSync(aside);
  } catch { /* another program was first */ }
}

const b64 = (bytes) => bytes.toString('base64url');

// keep is what is written down of an answer of the token endpoint.
function keep(answer, before) {
  if (!answer.access_token || String(answer.token_type).toLowerCase() !== 'bearer') throw new Error('the server gave no token');
  return { ...before, access_token: answer.access_token, refresh_token: answer.refresh_token || before.refresh_token, scope: answer.scope ?? before.scope,
    expires_at: new Date(Date.now() + (Number(answer.expires_in) || 3600) * 1000).toISOString() };
}

// refusal says why the server gave nothing.
const refusal = (a) => [a.json.error, a.json.error_description].filter(Boolean).join(': ') || `HTTP ${a.status}`;

// login leads a person through the pages of the server, and keeps what they give. tell is told what they should know.
export async function login(url, store, { scopes, port, browser, client = CLIENT, ca, tell }) {
  const found = await discover(url, ca);
  const state = b64(crypto.randomBytes(32)), verifier = b64(crypto.randomBytes(32));
  const answers = await listen(port);
  try {
    const redirect = `http://127.0.0.1:${answers.port}/callback`;
    const resource = found.resource, scope = scopes || found.scope;
    const address = new URL(found.server.authorization_endpoint);
    for (const [name, value] of Object.entries({ response_type: 'code', client_id: client, redirect_uri: redirect, state, resource,
      code_challenge: b64(crypto.createHash('sha256').update(verifier).digest()), code_challenge_method: 'S256', ...(scope && { scope }) })) address.searchParams.set(name, value);
    tell(`Open this address in a browser to log in:\n\n  ${address.href}\n`);
    if (browser && openBrowser(address.href)) tell('A browser should open by itself.');
    tell('Where the browser is on another machine, copy the address you are led to at last, and paste it here.');
    const kept = await answers.wait(state, found.server, async (code) => {
      const form = { grant_type: 'authorization_code', code, client_id: client, redirect_uri: redirect, code_verifier: verifier, resource };
      const a = await ask(new URL(found.server.token_endpoint), { method: 'POST', form, ca });
      if (a.status !== 200) throw new Error(`the server refused: ${refusal(a)}`);
      const kept = keep(a.json, { url: url.href, resource, issuer: found.server.issuer, client_id: client, token_endpoint: found.server.token_endpoint,
        revocation_endpoint: found.server.revocation_endpoint, introspection_endpoint: found.server.introspection_endpoint, logged_in_at: new Date().toISOString() });
      let before;
      await store.locked(async () => { before = store.read(); store.write(kept); });
      if (before) await revoke(before, ca).catch(() => {}); // nobody uses it any more
      return kept;
    });
    return kept;
  } finally { answers.close(); }
}

// listen waits on this machine for what the browser brings back.
async function listen(port) {
  let take;
  const server = http.createServer((q, w) => {
    const say = (status, text) => { w.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store', Connection: 'close' }); w.end(text + '\n'); };
    const at = new URL(q.url, 'http://127.0.0.1');
    if (q.method !== 'GET' || at.pathname !== '/callback' || !take) return say(404, 'There is nothing here.');
    take(at.searchParams, say);
  });
  await new Promise((done, failed) => { server.on('error', failed); server.listen(port || 0, '127.0.0.1', done); });
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    let at;
    try { at = new URL(line.trim()); } catch { return; }
    take?.(at.searchParams, (_, text) => process.stderr.write(text + '\n'));
  });
  // wait gives the code of the answer with this state to redeem, once. Answers with another state are not to this login.
  const wait = (state, issuer, redeem) => new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('nobody logged in within ten minutes')), LOGIN_TIME);
    let used = false;
    take = async (q, say) => {
      if (used || q.getAll('state').length !== 1 || q.get('state') !== state) return say(400, 'This is not the answer to the login that waits here.');
      used = true;
      try {
        if (q.get('iss') !== issuer.issuer && (issuer.authorization_response_iss_parameter_supported || q.has('iss'))) throw new Error(`the answer is from ${q.get('iss') || 'nobody'}, not from ${issuer.issuer}`);
        if (q.has('error')) throw new Error(q.get('error') === 'access_denied' ? 'you did not allow it' : `${q.get('error')}: ${q.get('error_description') || ''}`);
        if (q.getAll('code').length !== 1) throw new Error('the answer has no code');
        const kept = await redeem(q.get('code'));
        say(200, 'You are logged in. You can close this window.');
        resolve(kept);
      } catch (e) { say(400, `You are not logged in: ${e.message}`); reject(e); } finally { clearTimeout(timer); }
    };
  });
  return { port: server.address().port, wait, close: () => { lines.close(); process.stdin.unref?.(); server.close(); } };
}

// openBrowser shows an address to the person, where there is something to show it with.
function openBrowser(address) {
  const seen = process.platform === 'darwin' ? ['open'] : process.platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler']
    : process.env.BROWSER ? [process.env.BROWSER] : process.env.DISPLAY || process.env.WAYLAND_DISPLAY ? ['xdg-open'] : null;
  if (!seen) return false;
  const b = spawn(seen[0], [...seen.slice(1), address], { stdio: 'ignore', detached: true });
  b.on('error', () => {}); // the address was printed
  b.unref();
  return true;
}

// revoke gives tokens back: those that came of the same login end too.
export async function revoke(kept, ca) {
  const a = await ask(trusted(kept.revocation_endpoint, 'the server'), { method: 'POST', form: { token: kept.refresh_token, token_type_hint: 'refresh_token', client_id: kept.client_id }, ca });
  if (a.status !== 200) throw new Error(`the server did not revoke it: ${refusal(a)}`);
}

// logout gives back what is kept, and forgets it. It gives false where nothing was.
export const logout = (store, ca) => store.locked(async () => {
  const kept = store.read();
  if (!kept) return false;
  await revoke(kept, ca);
  store.forget();
  return true;
});

// stale reports whether a token ends within the next minute.
export const stale = (kept) => !(Date.parse(kept.expires_at) - EARLY > Date.now());

// renew gives what is kept, with another token than the one that is of no use any more. Of several bridges one asks for it; the others
// find it in the file.
export const renew = (store, useless, ca) => store.locked(async () => {
  const kept = store.read();
  if (!kept) throw new Over('nobody is logged in');
  if (kept.access_token !== useless && !stale(kept)) return kept;
  const form = { grant_type: 'refresh_token', refresh_token: kept.refresh_token, client_id: kept.client_id, resource: kept.resource };
  const a = await ask(trusted(kept.token_endpoint, 'the server'), { method: 'POST', form, ca });
  if (a.status === 400 || a.status === 401) throw new Over(`the login is over (${refusal(a)})`);
  if (a.status !== 200) throw new Error(`the login could not be renewed: ${refusal(a)}`);
  const next = keep(a.json, kept);
  store.write(next);
  return next;
});

// who is what the server says about a token.
export async function who(kept, ca) {
  const a = await ask(trusted(kept.introspection_endpoint, 'the server'), { method: 'POST', form: { token: kept.access_token }, headers: { Authorization: `Bearer ${kept.access_token}` }, ca });
  return a.status === 200 ? a.json : { active: false };
}
