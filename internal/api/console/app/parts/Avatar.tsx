/** The initials of a person or company. */
export function Avatar({ name, small = false }: { name: string; small?: boolean }) {
  const words = name.split(/\s+/).filter((word) => /^\p{L}/u.test(word));
  const initials = words.length === 0 ? "#" : [words[0], words.length > 1 ? words.at(-1) : ""].map((word) => Array.from(word ?? "")[0] ?? "").join("");
  return <span className={small ? "avatar small" : "avatar"} aria-hidden="true">{initials.toUpperCase()}</span>;
}
