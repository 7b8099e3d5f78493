export type MicrophoneFault = "no_microphone" | "microphone_refused";

/** Asks for the microphone; returns what is missing. */
export async function askForMicrophone(): Promise<MicrophoneFault | undefined> {
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    stream.getTracks().forEach((track) => track.stop());
    return undefined;
  } catch (cause) {
    return cause instanceof DOMException && cause.name === "NotAllowedError" ? "microphone_refused" : "no_microphone";
  }
}

/** Tells what is missing of the microphone whenever that changes, without asking the person. */
export async function followMicrophone(told: (fault: MicrophoneFault | undefined) => void): Promise<void> {
  const permission = await navigator.permissions.query({ name: "microphone" as PermissionName }).catch(() => undefined);
  const look = async () => {
    const devices = await navigator.mediaDevices.enumerateDevices();
    if (permission?.state === "denied") told("microphone_refused");
    else told(devices.some((d) => d.kind === "audioinput") ? undefined : "no_microphone");
  };
  permission?.addEventListener("change", () => void look());
  navigator.mediaDevices.addEventListener("devicechange", () => void look());
  await look();
}
