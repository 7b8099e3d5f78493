// Holds the authorization server against openid-client, which is certified for OpenID Connect: everything that must be refused, and what must not.
// The person is the program that started this one: it is told where the browser is to go, and answers where that leads.
import * as oauth from 'openid-client';
import { createInterface } from 'node:readline';

const base = process.argv[2];
const [issuer, tools] = [new URL(`${base}/auth`), `${base}/mcp/sse`];
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const open = [oauth.allowInsecureRequests]; // the server under test has no certificate
const fixed = await oauth.discovery(issuer, 'soniq-assistant', { token_endpoint_auth_method: 'none' }, oauth.None(), { algorithm: 'oauth2', execute: open });
const callback = 'http://127.0.0.1:45321/callback';
const register = (metadata) => oauth.dynamicClientRegistration(issuer, { client_name: 'second opinion', token_endpoint_auth_method: 'none', ...metadata },
  oauth.None(), { algorithm: 'oauth2', execute: open });

// visit sends the person to an address; the answer is where they are led back to, or '' where they are led nowhere.
async function visit(url, answer = 'allow', untick = '-') {
  console.log(['VISIT', answer, untick, url.href].join(' '));
  return (await lines.next()).value;
}

// begin makes an authorization request; changed parameters that are undefined are left out.
async function begin(config = fixed, changed = {}) {
  const verifier = oauth.randomPKCECodeVerifier(), state = oauth.randomState();
  const all = { redirect_uri: callback, scope: 'calls:read calls:write contacts:read', resource: tools, state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256', ...changed };
  const parameters = Object.fromEntries(Object.entries(all).filter(([, v]) => v !== undefined));
  return { config, verifier, state, url: oauth.buildAuthorizationUrl(config, parameters) };
}

const redeem = (asked, to, more = {}, verifier = asked.verifier) =>
  oauth.authorizationCodeGrant(asked.config, new URL(to), { pkceCodeVerifier: verifier, expectedState: asked.state }, more);

// granted is a whole log-in.
async function granted(config, changed, answer, untick) {
  const asked = await begin(config, changed);
  return redeem(asked, await visit(asked.url, answer, untick));
}

const status = async (url, token) => (await fetch(url, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` } })).status;
const equal = (got, want) => { if (got !== want) throw new Error(`${got}, not ${want}`); };

// refused wants an error of OAuth, whoever tells it.
async function refused(code, promise) {
  try { await promise; } catch (e) { return equal(e.error ?? e.code, code); }
  throw new Error(`not refused with ${code}`);
}

// denied wants the error at the redirect address, with who answers.
async function denied(code, changed, config = fixed, answer = 'allow') {
  const asked = await begin(config, changed), to = await visit(asked.url, answer);
  equal(new URL(to).searchParams.get('iss'), issuer.href);
  await refused(code, redeem(asked, to));
}

// nowhere wants an error page.
async function nowhere(changed, config = fixed) {
  equal(await visit((await begin(config, changed)).url), '');
}

const other = await register({ redirect_uris: [callback] });

const claims = {
  'the description names the issuer, S256 alone, and that answers are signed with iss': async () => {
    const m = fixed.serverMetadata();
    equal(m.issuer, issuer.href);
    equal(m.code_challenge_methods_supported.join(), 'S256');
    equal(m.authorization_response_iss_parameter_supported, true);
    equal(m.scopes_supported.includes('offline_access'), false);
  },
  'a token has what was ticked, and opens the tools': async () => {
    const t = await granted(fixed, { prompt: 'consent' }, 'allow', 'calls:write');
    equal(t.scope, 'calls:read contacts:read');
    equal(await status(tools, t.access_token) === 401, false);
    equal(await status(`${base}/v1/calls`, t.access_token), 401); // it was made for the tools
  },
  'a token for the API does not open the tools': async () => {
    const t = await granted(fixed, { resource: base });
    equal(await status(tools, t.access_token), 401);
    equal(await status(`${base}/v1/calls`, t.access_token) === 401, false);
  },
  'no PKCE': () => denied('invalid_request', { code_challenge: undefined, code_challenge_method: undefined }),
  'a downgrade to plain': () => denied('invalid_request', { code_challenge_method: 'plain' }),
  'no method, which means plain': () => denied('invalid_request', { code_challenge_method: undefined }),
  'an answer without iss, or with that of another': async () => {
    const asked = await begin(), to = new URL(await visit(asked.url));
    for (const iss of ['', 'https://evil.example/auth']) {
      const wrong = new URL(to);
      wrong.searchParams.delete('iss');
      if (iss) wrong.searchParams.set('iss', iss);
      await refused('OAUTH_INVALID_RESPONSE', redeem(asked, wrong));
    }
    await redeem(asked, to);
  },
  'a wrong verifier': async () => {
    const asked = await begin(), to = await visit(asked.url);
    await refused('invalid_grant', redeem(asked, to, {}, oauth.randomPKCECodeVerifier()));
  },
  'a code used twice ends what it gave': async () => {
    const asked = await begin(), to = await visit(asked.url), t = await redeem(asked, to);
    await refused('invalid_grant', redeem(asked, to));
    equal(await status(tools, t.access_token), 401);
    await refused('invalid_grant', oauth.refreshTokenGrant(fixed, t.refresh_token));
  },
  'twenty redemptions of one code at once': async () => {
    const asked = await begin(), to = await visit(asked.url);
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => redeem(asked, to)));
    equal(all.filter((r) => r.status === 'fulfilled').length, 1);
    equal(all.filter((r) => r.reason?.error === 'invalid_grant').length, 19);
  },
  'a code of another client': async () => {
    const asked = await begin(), to = await visit(asked.url);
    await refused('invalid_grant', redeem({ ...asked, config: other }, to));
  },
  'a refresh token of another client': async () => {
    await refused('invalid_grant', oauth.refreshTokenGrant(other, (await granted()).refresh_token));
  },
  'a foreign resource': () => denied('invalid_target', { resource: 'https://evil.example/mcp' }),
  'another resource than that of the code': async () => {
    const asked = await begin(), to = await visit(asked.url);
    await refused('invalid_target', redeem(asked, to, { resource: base }));
  },
  'the implicit grant': () => denied('unsupported_response_type', { response_type: 'token' }),
  'the password grant': () => refused('unsupported_grant_type', oauth.genericGrantRequest(fixed, 'password', { username: 'ada@example.com', password: 'x' })),
  'client credentials': () => refused('unsupported_grant_type', oauth.genericGrantRequest(fixed, 'client_credentials', { scope: 'calls:read' })),
  'an unknown scope': () => denied('invalid_scope', { scope: 'calls:read no:such' }),
  'a partner scope for a program that registered itself': () => denied('invalid_scope', { scope: 'partner:admin' }, other),
  'an unknown client': async () => {
    const nobody = new oauth.Configuration(fixed.serverMetadata(), 'nobody', { token_endpoint_auth_method: 'none' }, oauth.None());
    oauth.allowInsecureRequests(nobody);
    await nowhere({}, nobody);
  },
  'a redirect address of another host': () => nowhere({ redirect_uri: 'https://evil.example/callback' }),
  'a redirect address with another path': () => nowhere({ redirect_uri: 'http://127.0.0.1:45321/elsewhere' }, other),
  'a redirect address on the own machine with another port': () => granted(other, { redirect_uri: 'http://127.0.0.1:45999/callback' }),
  'another redirect address at the token endpoint': async () => {
    const asked = await begin(), to = new URL(await visit(asked.url));
    to.port = '45999';
    await refused('invalid_grant', redeem(asked, to));
  },
  'no redirect address at the token endpoint': async () => {
    const asked = await begin(), to = new URL(await visit(asked.url));
    await oauth.genericGrantRequest(fixed, 'authorization_code', { code: to.searchParams.get('code'), code_verifier: asked.verifier });
  },
  'the person says no': () => denied('access_denied', { prompt: 'consent' }, fixed, 'deny'),
  'a refresh token is good once, and its use again ends the family': async () => {
    const first = await granted(), second = await oauth.refreshTokenGrant(fixed, first.refresh_token);
    equal(second.refresh_token === first.refresh_token, false);
    equal(await status(tools, second.access_token) === 401, false);
    await refused('invalid_grant', oauth.refreshTokenGrant(fixed, first.refresh_token));
    await refused('invalid_grant', oauth.refreshTokenGrant(fixed, second.refresh_token));
    equal(await status(tools, second.access_token), 401);
  },
  'a refresh asks for fewer scopes, not for more': async () => {
    const t = await granted();
    await refused('invalid_scope', oauth.refreshTokenGrant(fixed, t.refresh_token, { scope: 'calls:read users:admin' }));
    equal((await oauth.refreshTokenGrant(fixed, t.refresh_token, { scope: 'calls:read' })).scope, 'calls:read');
  },
  'a refresh for another resource': async () => {
    await refused('invalid_target', oauth.refreshTokenGrant(fixed, (await granted()).refresh_token, { resource: base }));
  },
  'what is revoked is over': async () => {
    const t = await granted();
    await oauth.tokenRevocation(fixed, t.refresh_token);
    equal(await status(tools, t.access_token), 401);
    await refused('invalid_grant', oauth.refreshTokenGrant(fixed, t.refresh_token));
  },
  'a registered redirect address is https, or on the own machine': async () => {
    for (const wrong of ['http://evil.example/callback', 'javascript:alert(1)', 'https://evil.example/#x']) {
      await refused('invalid_redirect_uri', register({ redirect_uris: [wrong] }));
    }
  },
};

for (const [claim, check] of Object.entries(claims)) {
  let wrong = '';
  try { await check(); } catch (e) { wrong = `${e.message} ${e.error ?? e.code ?? ''} ${e.error_description ?? ''} ${e.cause?.message ?? ''}`.trim(); }
  console.log(JSON.stringify({ claim, wrong }));
}
process.exit(0);
