// How many messages of the network a text becomes, as the server counts it (GSM 03.38, 23.040).

const basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
const extension = "\f^{}\\[~]|€";

/** The most characters of a message. */
export const maxLength = 1600;

/** Returns the number of segments, and how many characters still fit into the last. */
export function segments(text: string): { count: number; left: number; plain: boolean } {
  const characters = [...text];
  const plain = characters.every((c) => basic.includes(c) || extension.includes(c));
  const sizes = characters.map((c) => (plain ? (extension.includes(c) ? 2 : 1) : c.length));
  const whole = plain ? 160 : 70, part = plain ? 153 : 67;
  const all = sizes.reduce((sum, n) => sum + n, 0);
  if (all <= whole) return { count: 1, left: whole - all, plain };
  let count = 1, left = part;
  for (const n of sizes) {
    if (n > left) {
      count++;
      left = part;
    }
    left -= n;
  }
  return { count, left, plain };
}
