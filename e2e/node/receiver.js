// A receiver written from the published contract, with plain Node, beside the libraries of Standard Webhooks and of Svix.
//
//   node receiver.js <secret> [<further secrets>]
//
// Prints its port, then one line of JSON for each request: what was received and which verifications accept it. A
// receiver accepts with any of the secrets it was given. The path says how it answers, one word for each request and the
// last for all that follow: /500/200 refuses the first. What does not verify is answered 401, whatever the path says.
'use strict';
const http = require('http');
const crypto = require('crypto');
const { Webhook } = require('standardwebhooks');
const svixLibrary = require('svix');

const secrets = process.argv.slice(2);
const requests = new Map(); // how many came to each path

// The published rule: the hex HMAC-SHA256 of JSON.stringify(req.body), keyed with the secret, in x-service-signature.
function contract(headers, body) {
  const given = headers['x-service-signature'];
  return secrets.some((secret) => {
    const expected = crypto.createHmac('sha256', secret).update(JSON.stringify(body)).digest('hex');
    return typeof given === 'string' && given.length === expected.length &&
      crypto.timingSafeEqual(Buffer.from(given), Buffer.from(expected));
  });
}

// The same over the bytes as they came.
function bytes(headers, raw) {
  return secrets.some((secret) => headers['x-service-signature'] === crypto.createHmac('sha256', secret).update(raw).digest('hex'));
}

function standard(headers, raw) {
  return secrets.some((secret) => {
    try {
      new Webhook(secret).verify(raw, headers);
      return true;
    } catch {
      return false;
    }
  });
}

function svix(headers, raw) {
  return secrets.some((secret) => {
    try {
      new svixLibrary.Webhook(secret).verify(raw, headers);
      return true;
    } catch {
      return false;
    }
  });
}

// The ways to answer that are no status.
const manners = {
  slow: (request, response) => setTimeout(() => response.writeHead(204).end(), 700),
  hang: () => {},
  reset: (request) => request.socket.resetAndDestroy(),
  redirect: (request, response) => response.writeHead(307, { location: '/redirected' }).end(),
  later: (request, response) => response.writeHead(429, { 'retry-after': '8' }).end('busy'),
  abort: (request, response) => response.writeHead(500, { 'webhook-delivery': 'abort-message' }).end(),
  huge: (request, response) => {
    response.writeHead(200);
    const part = Buffer.alloc(1 << 20, 'x');
    const more = () => { while (!response.destroyed && response.write(part)); };
    response.on('drain', more).on('error', () => {});
    more();
  },
};

function answer(request, response, good) {
  const words = request.url.split('/').slice(1);
  const n = requests.get(request.url) || 0;
  requests.set(request.url, n + 1);
  const word = good ? words[Math.min(n, words.length - 1)] : '401';
  if (manners[word]) {
    manners[word](request, response);
    return;
  }
  response.writeHead(Number(word) || 200).end();
}

http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const raw = Buffer.concat(parts);
    const line = { id: request.headers['webhook-id'], event: null, path: request.url, at: Date.now(),
      attempt: Number(request.headers['x-service-attempt']), contract: false, bytes: false, standard: false, svix: false, tampered: true };
    try {
      const body = JSON.parse(raw.toString('utf8'));
      line.event = body.event;
      line.members = Object.keys(body);
      line.contract = contract(request.headers, body);
      line.bytes = bytes(request.headers, raw);
      line.standard = standard(request.headers, raw.toString('utf8'));
      line.svix = svix(request.headers, raw.toString('utf8'));
      const other = { ...body, data: { ...body.data, call_id: 'call_other' } };
      line.tampered = contract(request.headers, other) || standard(request.headers, JSON.stringify(other)) ||
        svix(request.headers, JSON.stringify(other));
    } catch (error) {
      line.error = String(error);
    }
    console.log(JSON.stringify(line));
    answer(request, response, line.contract && line.standard && line.svix);
  });
}).listen(0, '127.0.0.1', function () {
  console.log(JSON.stringify({ port: this.address().port }));
});

process.stdin.on('end', () => process.exit(0)).resume(); // ends with whoever started it
