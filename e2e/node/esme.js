// A program that speaks SMPP, made with npm's smpp as most are: it binds, submits what it is given and prints what it is told.
//
//   node esme.js PORT SYSTEM_ID PASSWORD [JSON list of {"from":…,"to":…,"text":…,"payload":true}]
//
// Prints one line of JSON for whatever happens: {"bound":status}, {"submitted":index,"status":…,"id":…}, {"receipt":id,"stat":…},
// {"message":text,"from":…,"to":…}, {"closed":true}.
'use strict';
const smpp = require('smpp');

const [port, system_id, password, orders] = process.argv.slice(2);
const say = (o) => process.stdout.write(JSON.stringify(o) + '\n');
const parts = new Map();

const session = smpp.connect({ url: `smpp://127.0.0.1:${port}` }, () => {
  session.bind_transceiver({ system_id, password }, (answer) => {
    say({ bound: answer.command_status });
    if (answer.command_status !== 0) return;
    (JSON.parse(orders || '[]') || []).forEach((o, index) => submit(o, index));
  });
});
session.on('error', () => {});
session.on('close', () => { say({ closed: true }); process.exit(0); });

function submit(o, index) {
  const pdu = { source_addr: o.from.replace('+', ''), source_addr_ton: 1, source_addr_npi: 1, destination_addr: o.to.replace('+', ''), dest_addr_ton: 1,
    dest_addr_npi: 1, registered_delivery: 1 };
  if (o.bare) pdu.source_addr_ton = pdu.dest_addr_ton = pdu.source_addr_npi = pdu.dest_addr_npi = 0;
  if (o.coding !== undefined) pdu.data_coding = o.coding;
  pdu[o.payload ? 'message_payload' : 'short_message'] = o.text;
  session.submit_sm(pdu, (answer) => say({ submitted: index, status: answer.command_status, id: answer.message_id }));
}

session.on('deliver_sm', (pdu) => {
  session.send(pdu.response());
  const text = pdu.short_message.message;
  if (pdu.esm_class & 4) { say({ receipt: pdu.receipted_message_id, stat: /stat:(\w+)/.exec(text)[1] }); return; }
  const udh = pdu.short_message.udh && pdu.short_message.udh[0];
  if (!udh) { say({ message: text, from: pdu.source_addr, to: pdu.destination_addr }); return; }
  const key = pdu.source_addr + ' ' + udh[2], all = parts.get(key) || [];
  all[udh[4] - 1] = text;
  parts.set(key, all);
  if (Object.keys(all).length === udh[3]) { say({ message: all.join(''), from: pdu.source_addr, to: pdu.destination_addr }); parts.delete(key); }
});
session.on('enquire_link', (pdu) => session.send(pdu.response()));
session.on('unbind', (pdu) => { session.send(pdu.response()); session.close(); });
