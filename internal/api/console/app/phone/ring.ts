/**
 * Rings until the returned function is called: two tones for a second, then two seconds of silence. During a call it is quiet. The title
 * of the tab shows it too.
 */
export function ring(quiet: boolean): () => void {
  const title = document.title;
  document.title = "☎ " + title;
  let context: AudioContext | undefined;
  try {
    context = new AudioContext();
    const level = context.createGain();
    level.gain.value = 0;
    level.connect(context.destination);
    for (const hertz of [400, 450]) {
      const tone = context.createOscillator();
      tone.frequency.value = hertz;
      tone.connect(level);
      tone.start();
    }
    for (let at = 0; at < 180; at += 3) {
      level.gain.setTargetAtTime(quiet ? 0.015 : 0.08, context.currentTime + at, 0.02);
      level.gain.setTargetAtTime(0, context.currentTime + at + 1, 0.02);
    }
  } catch {
    // no device for sound: the card is seen
  }
  return () => {
    if (document.title.startsWith("☎ ")) document.title = document.title.slice(2);
    void context?.close();
    context = undefined;
  };
}
