import { t, type Key } from "../words/words";

const colours = { positive: "green", neutral: "grey", negative: "red", mixed: "amber" } as const;

/** The mood that was heard in a call. */
export function Mood({ mood }: { mood: keyof typeof colours }) {
  return <span className="state"><span className={"dot " + colours[mood]} />{t(`mood.${mood}` as Key)}</span>;
}
