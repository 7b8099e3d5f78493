// A receiver written from the published contract, with plain Node, beside the library of Standard Webhooks.
//
//   node receiver.js <secret> [<further secrets>]
//
// Prints its port, then one line of JSON for each request: what was received and which verifications accept it. A
// receiver accepts with any of the secrets it was given.
'use strict';
const http = require('http');
const crypto = require('crypto');
const { Webhook } = require('standardwebhooks');

const secrets = process.argv.slice(2);
let answer = 200;

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

http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const raw = Buffer.concat(parts);
    const line = { id: request.headers['webhook-id'], event: null, contract: false, bytes: false, standard: false, tampered: true };
    try {
      const body = JSON.parse(raw.toString('utf8'));
      line.event = body.event;
      line.members = Object.keys(body);
      line.contract = contract(request.headers, body);
      line.bytes = bytes(request.headers, raw);
      line.standard = standard(request.headers, raw.toString('utf8'));
      const other = { ...body, data: { ...body.data, call_id: 'call_other' } };
      line.tampered = contract(request.headers, other) || standard(request.headers, JSON.stringify(other));
    } catch (error) {
      line.error = String(error);
    }
    console.log(JSON.stringify(line));
    response.writeHead(line.contract && line.standard ? answer : 401).end();
  });
}).listen(0, '127.0.0.1', function () {
  console.log(JSON.stringify({ port: this.address().port }));
});

process.stdin.on('end', () => process.exit(0)).resume(); // ends with whoever started it
