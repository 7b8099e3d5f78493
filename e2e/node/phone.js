// A telephone in a page: JsSIP, and ears that tell what tone is heard.
import JsSIP from 'jssip';

const events = window.events = [];
const tell = (...a) => events.push(a.filter((x) => x !== undefined).join(' '));
let tone = () => ({ hz: 0, db: -999 });
window.tone = () => tone();

const hear = (stream) => {
  const audio = new Audio(); audio.srcObject = stream; audio.play();
  const context = new AudioContext(); context.resume();
  const analyser = context.createAnalyser(); analyser.fftSize = 8192;
  context.createMediaStreamSource(stream).connect(analyser);
  tone = () => {
    const d = new Float32Array(analyser.frequencyBinCount); analyser.getFloatFrequencyData(d);
    let m = 1; for (let i = 2; i < d.length; i++) if (d[i] > d[m]) m = i;
    return { hz: m * context.sampleRate / analyser.fftSize, db: Number.isFinite(d[m]) ? d[m] : -999 };
  };
};

const media = { mediaConstraints: { audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false }, video: false }, pcConfig: { iceServers: [] } };

const watch = (session) => {
  window.session = session;
  for (const e of ['progress', 'accepted', 'confirmed', 'hold', 'unhold']) session.on(e, (x) => tell(e, x && x.originator));
  for (const e of ['progress', 'accepted']) session.on(e, (x) => x && x.response && tell('call of', e, x.response.getHeader('X-Soniq-Call')));
  session.on('failed', (e) => tell('failed', e.cause)); session.on('ended', (e) => tell('ended', e.originator, e.cause));
  session.on('newDTMF', (e) => tell('dtmf', e.originator, e.dtmf.tone));
};
const listen = (pc) => pc.addEventListener('track', (e) => hear(e.streams[0] || new MediaStream([e.track])));

window.register = (ws, uri, password, answers) => {
  const ua = window.ua = new JsSIP.UA({ sockets: [new JsSIP.WebSocketInterface(ws)], uri, password, register: true });
  for (const e of ['connected', 'disconnected', 'registered', 'unregistered']) ua.on(e, () => tell(e));
  ua.on('registrationFailed', (e) => tell('registrationFailed', e.cause));
  ua.on('newRTCSession', ({ session, originator, request }) => {
    watch(session);
    if (originator !== 'remote') return;
    tell('incoming', session.remote_identity.uri.user);
    tell('call of INVITE', request.getHeader('X-Soniq-Call'));
    session.on('peerconnection', ({ peerconnection }) => listen(peerconnection));
    if (answers) session.answer(media);
  });
  ua.start();
};
window.dial = (target) => { const s = window.ua.call(target, media); listen(s.connection); };
window.change = (method) => new Promise((done, fail) => {
  if (!window.session[method](undefined, () => done(true))) fail(new Error(method + ' is not possible now'));
});
window.report = async () => {
  const o = {}; (await window.session.connection.getStats()).forEach((x) => {
    if (x.type === 'inbound-rtp') o.received = x.packetsReceived;
    if (x.type === 'outbound-rtp') o.sent = x.packetsSent;
    if (x.type === 'transport') o.cipher = x.srtpCipher;
    if (x.type === 'codec') o.codec = x.mimeType;
  }); return o;
};
