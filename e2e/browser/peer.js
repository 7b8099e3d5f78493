// A page with a bare RTCPeerConnection, for tests of media without signalling.
window.hear = (stream) => {
  const audio = new Audio(); audio.srcObject = stream; audio.play();
  const context = new AudioContext(); context.resume();
  const analyser = context.createAnalyser(); analyser.fftSize = 8192;
  context.createMediaStreamSource(stream).connect(analyser);
  window.tone = () => {
    const d = new Float32Array(analyser.frequencyBinCount); analyser.getFloatFrequencyData(d);
    let m = 1; for (let i = 2; i < d.length; i++) if (d[i] > d[m]) m = i;
    return { hz: m * context.sampleRate / analyser.fftSize, db: Number.isFinite(d[m]) ? d[m] : -999 };
  };
};
window.tone = () => ({ hz: 0, db: -999 });
window.heardAt = 0;
window.open_ = async () => {
  const pc = window.pc = new RTCPeerConnection({ iceServers: [] });
  pc.addEventListener('track', (e) => {
    if (!e.streams[0]) throw new Error('the track has no stream');
    window.hear(e.streams[0]);
    e.track.addEventListener('unmute', () => { window.heardAt = window.heardAt || Date.now(); });
  });
  const mic = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
  mic.getTracks().forEach((t) => pc.addTrack(t, mic));
};
const gathered = (pc) => new Promise((done) => {
  const look = () => pc.iceGatheringState === 'complete' && done(); look(); pc.addEventListener('icegatheringstatechange', look);
});
window.offer = async (restart) => {
  await pc.setLocalDescription(await pc.createOffer({ iceRestart: restart })); await gathered(pc); return pc.localDescription.sdp;
};
window.take = async (type, sdp) => { window.takenAt = Date.now(); await pc.setRemoteDescription({ type, sdp }); };
window.answer = async (sdp) => {
  await take('offer', sdp); await pc.setLocalDescription(await pc.createAnswer()); await gathered(pc); return pc.localDescription.sdp;
};
window.report = async () => {
  const o = { state: pc.connectionState }; (await pc.getStats()).forEach((x) => {
    if (x.type === 'inbound-rtp') o.received = x.packetsReceived;
    if (x.type === 'outbound-rtp') o.sent = x.packetsSent;
    if (x.type === 'remote-inbound-rtp') { o.rtt = x.roundTripTime; o.lost = x.packetsLost; }
    if (x.type === 'transport') { o.cipher = x.srtpCipher; o.dtls = x.dtlsState; o.role = x.dtlsRole; o.ice = x.iceRole; }
  }); return o;
};
