import { useEffect, useState, type KeyboardEvent } from "react";
import { useRead, useScope } from "../api/query";
import { t } from "../words/words";
import { spaced } from "./PhoneNumber";

/** Somebody who can be written to. */
export interface Target { name: string; number: string }

const waitBeforeSearch = 150;

/** A field for a number or the name of a contact. The contacts that match stand below it; Enter takes the first. */
export function Recipient({ label, initial, onChoose }: { label: string; initial: Target | undefined; onChoose: (target: Target | undefined) => void }) {
  const [text, setText] = useState(initial?.name ?? ""), [q, setQ] = useState(""), [chosen, setChosen] = useState(!!initial);
  useEffect(() => {
    const timer = setTimeout(() => setQ(!chosen && /\p{L}/u.test(text) ? text.trim() : ""), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [text, chosen]);
  const contacts = useRead("contacts.list", { query: { q, limit: 8 } }, { enabled: useScope("contacts:read") && q !== "", keep: true });
  const found: Target[] = q === "" || chosen ? [] : (contacts.data?.data ?? []).flatMap((c) => c.phones.map((p) => ({ name: c.name || c.company, number: p.number })));
  const type = (value: string) => {
    setText(value);
    setChosen(false);
    onChoose(/^\+?[\d\s()./-]{5,}$/.test(value.trim()) ? { name: value, number: value.replace(/[^+\d]/g, "") } : undefined);
  };
  const take = (target: Target) => {
    setText(`${target.name}, ${spaced(target.number)}`);
    setChosen(true);
    onChoose(target);
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key !== "Enter" || !found[0]) return;
    e.preventDefault();
    take(found[0]);
  };
  return (
    <div className="recipient">
      <label className="field"><span>{label}</span><input autoComplete="off" placeholder={t("dialer.placeholder")} value={text} onChange={(e) => type(e.currentTarget.value)} onKeyDown={keys} /></label>
      <p className="small soft" role="status">{q !== "" && !chosen && contacts.isSuccess && !contacts.isPlaceholderData && found.length === 0 ? t("contacts.none.found") : ""}</p>
      {found.length > 0 && <ul className="choices" aria-label={t("contacts.title")}>{found.map((x) => <li key={x.name + x.number}><button type="button" className="button" onClick={() => take(x)}><span><strong>{x.name}</strong> <small className="soft">{spaced(x.number)}</small></span></button></li>)}</ul>}
    </div>
  );
}
