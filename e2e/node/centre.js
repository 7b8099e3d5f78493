// An SMS centre made with npm's smpp: it takes messages, sends receipts and messages of its own, and misbehaves when told to.
//
//   node centre.js [port]
//
// Prints {"port":…}, then one line of JSON for whatever happens. Reads one line of JSON per order on stdin:
//   {"do":"mo","from":…,"to":…,"text":…}   a message for us, in parts where it is long
//   {"do":"receipt","id":…,"stat":…}       a receipt, of whatever
//   {"do":"limit","n":…}                   how many messages a second it takes; more are throttled; 0: all
//   {"do":"manner","is":…}                 "" or "mute" (takes messages and never answers), "slow" (answers after a third of a second) or "hex" (identifiers in hexadecimal, receipts in decimal)
// How a recipient's number ends says what becomes of the message: 12 is not delivered, 13 is refused, 14 has its receipt before the
// answer, 15 is answered after two seconds, 16 has its receipt twice. All others are delivered.
'use strict';
const smpp = require('smpp');

const say = (o) => process.stdout.write(JSON.stringify(o) + '\n');
const sessions = new Set();
let next = Date.now() % 1e9 * 10, limit = 0, manner = '', second = 0, taken = 0;

function throttled() {
  const now = Math.floor(Date.now() / 1000);
  if (now !== second) { second = now; taken = 0; }
  return limit > 0 && ++taken > limit;
}

function receipt(session, pdu, id, stat, err) {
  session.deliver_sm({
    source_addr: pdu.destination_addr, source_addr_ton: 1, source_addr_npi: 1,
    destination_addr: pdu.source_addr, dest_addr_ton: 1, dest_addr_npi: 1, esm_class: 4,
    short_message: `id:${id} sub:001 dlvrd:001 submit date:2601010000 done date:2601010001 stat:${stat} err:${err} text:`,
  }, (answer) => say({ event: 'receipt_taken', id: String(id), status: answer.command_status }));
}

function submit(session, pdu) {
  const to = pdu.destination_addr, end = to.slice(-2);
  if (throttled()) { say({ event: 'throttled', to }); session.send(pdu.response({ command_status: smpp.ESME_RTHROTTLED })); return; }
  const udh = pdu.short_message.udh && pdu.short_message.udh[0];
  const n = next++, id = manner === 'hex' ? n.toString(16) : String(n);
  say({ event: 'submit', id: String(n), from: pdu.source_addr, to, text: pdu.short_message.message, coding: pdu.data_coding, wants: pdu.registered_delivery,
    reference: udh ? udh[2] : 0, total: udh ? udh[3] : 1, part: udh ? udh[4] : 1 });
  if (manner === 'mute') return;
  const answer = () => session.send(pdu.response({ message_id: id }));
  const tell = () => receipt(session, pdu, n, end === '12' ? 'UNDELIV' : 'DELIVRD', end === '12' ? '027' : '000');
  switch (end) {
    case '13': session.send(pdu.response({ command_status: smpp.ESME_RINVDSTADR })); return;
    case '14': tell(); setTimeout(answer, 150); return;
    case '15': setTimeout(() => { answer(); tell(); }, 2000); return;
    case '16': answer(); setTimeout(tell, 50); setTimeout(tell, 60); return;
    default:
      if (manner === 'slow') { setTimeout(() => { answer(); tell(); }, 300); return; }
      answer();
      if (pdu.registered_delivery) setTimeout(tell, 50);
  }
}

function speak(o) {
  const session = [...sessions].pop();
  if (!session) { say({ event: 'nobody' }); return; }
  const gsm = /^[\x20-\x7e]*$/.test(o.text), size = gsm ? 153 : 67;
  const parts = [];
  for (let i = 0; i < o.text.length; i += size) parts.push(o.text.slice(i, i + size));
  const whole = o.text.length <= (gsm ? 160 : 70);
  const send = (text, udh) => session.deliver_sm({
    source_addr: o.from.replace('+', ''), source_addr_ton: 1, source_addr_npi: 1,
    destination_addr: o.to.replace('+', ''), dest_addr_ton: 1, dest_addr_npi: 1, data_coding: gsm ? 0 : 8,
    short_message: udh ? { udh, message: text } : { message: text },
  }, (answer) => say({ event: 'mo_taken', status: answer.command_status }));
  if (whole) { send(o.text); return; }
  const reference = o.reference || next++ & 255;
  parts.forEach((text, i) => {
    if (!o.only || o.only.includes(i + 1)) send(text, Buffer.from([5, 0, 3, reference, parts.length, i + 1]));
  });
}

const server = smpp.createServer((session) => {
  session.on('error', () => {});
  for (const kind of ['bind_transceiver', 'bind_transmitter', 'bind_receiver']) {
    session.on(kind, (pdu) => {
      if (pdu.password === 'wrong') { session.send(pdu.response({ command_status: smpp.ESME_RBINDFAIL })); session.close(); return; }
      session.send(pdu.response({ system_id: 'centre' }));
      sessions.add(session);
      say({ event: 'bound', kind, system_id: pdu.system_id });
    });
  }
  session.on('submit_sm', (pdu) => submit(session, pdu));
  session.on('enquire_link', (pdu) => session.send(pdu.response()));
  session.on('unbind', (pdu) => { session.send(pdu.response()); session.close(); });
  session.on('close', () => { if (sessions.delete(session)) say({ event: 'left' }); });
  session.socket.setNoDelay(true);
});
server.listen(Number(process.argv[2] || 0), '127.0.0.1', () => say({ port: server.address().port }));

let rest = '';
process.stdin.on('data', (b) => {
  const lines = (rest + b).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    const o = JSON.parse(line);
    if (o.do === 'mo') speak(o);
    if (o.do === 'limit') limit = o.n;
    if (o.do === 'manner') manner = o.is;
    if (o.do === 'receipt') {
      for (const s of sessions) receipt(s, { source_addr: '12025550143', destination_addr: '12025550199' }, o.id, o.stat, '000');
    }
  }
});
process.stdin.on('end', () => process.exit(0));
