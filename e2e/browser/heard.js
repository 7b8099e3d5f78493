// Tells which tone the last connection of the page receives. The page itself is not changed.
(() => {
  const connections = [], listeners = new WeakMap(), Native = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Native {
    constructor(...given) { super(...given); connections.push(this); }
  };
  window.heard = () => {
    const track = connections.at(-1)?.getReceivers().map((r) => r.track).find((t) => t?.kind === "audio" && t.readyState === "live");
    if (!track) return 0;
    let analyser = listeners.get(track);
    if (!analyser) {
      const context = new AudioContext();
      analyser = context.createAnalyser();
      analyser.fftSize = 8192;
      context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
      listeners.set(track, analyser);
    }
    const levels = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(levels);
    let most = 1;
    for (let i = 2; i < levels.length; i++) if (levels[i] > levels[most]) most = i;
    return levels[most] > -60 ? most * analyser.context.sampleRate / analyser.fftSize : 0;
  };
})();
