// Signs a callback as Twilio does, with its own library: node twilio_sign.js TOKEN ADDRESS FORM; prints the signature.
'use strict';
const { getExpectedTwilioSignature } = require('twilio');
const [token, address, form] = process.argv.slice(2);
process.stdout.write(getExpectedTwilioSignature(token, address, Object.fromEntries(new URLSearchParams(form))));
