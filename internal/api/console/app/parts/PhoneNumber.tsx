import type { ClipboardEvent } from "react";

/** Country codes of two and one digits; the others have three. */
const short = /^(?:1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;

/** How many digits the groups behind the country code have. The first rule that fits is taken; further digits join the last group. */
const rules: [code: string, begins: RegExp, groups: number[]][] = [
  ["1", /^/, [3, 3, 4]], ["7", /^/, [3, 3, 2, 2]], ["44", /^2/, [2, 4, 4]], ["44", /^7/, [4, 6]], ["44", /^/, [3, 3, 4]], ["49", /^1/, [3, 4, 4]],
  ["49", /^(?:30|40|69|89)/, [2, 4, 4]], ["49", /^/, [3, 4, 4]], ["33", /^/, [1, 2, 2, 2, 2]], ["34", /^/, [3, 3, 3]], ["39", /^/, [3, 3, 4]], ["31", /^6/, [1, 4, 4]],
  ["31", /^/, [2, 3, 4]], ["41", /^/, [2, 3, 2, 2]], ["43", /^1/, [1, 4, 4]], ["43", /^/, [3, 3, 4]], ["61", /^4/, [3, 3, 3]], ["61", /^/, [1, 4, 4]], ["55", /^/, [2, 5, 4]], ["91", /^/, [5, 5]],
];

/** Returns a number with spaces, such as +44 20 7946 0018. What is no whole number stays as it is. */
export function spaced(number: string): string {
  if (!/^\+\d{7,15}$/.test(number)) return number;
  const digits = number.slice(1), code = short.exec(digits)?.[0] ?? digits.slice(0, 3), rest = digits.slice(code.length);
  const groups = rules.find(([c, begins]) => c === code && begins.test(rest))?.[2] ?? [3, 3, 4];
  const parts = ["+" + code];
  let at = 0;
  groups.forEach((n, i) => {
    if (at < rest.length) parts.push(rest.slice(at, i === groups.length - 1 ? undefined : at + n));
    at += n;
  });
  return parts.join(" ");
}

/** Returns a name that has letters. Phones without a name send their number as one. */
export const asName = (name: string | null | undefined): string | undefined => (name && /\p{L}/u.test(name) ? name : undefined);

/** A number as people write it. It is copied as E.164. */
export function PhoneNumber({ number }: { number: string }) {
  const copy = (e: ClipboardEvent) => {
    if (getSelection()?.toString().trim() !== spaced(number)) return;
    e.preventDefault();
    e.clipboardData.setData("text/plain", number);
  };
  return <span className="number" onCopy={copy}>{spaced(number)}</span>;
}
