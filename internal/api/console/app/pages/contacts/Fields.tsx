import type { ReactNode } from "react";
import type { Contact } from "../../api/client";
import { useNames } from "../../api/query";
import { moment, t, textOf } from "../../words/words";

/** Where a contact comes from, as words. */
export const sourceName = (source: string): string => textOf("contacts.source." + source) ?? source;

/** The other fields of a contact, and where it comes from: of this server, and of the connected systems that have the same person. */
export function Fields({ contact: c }: { contact: Contact }) {
  const nameOf = useNames();
  const rows: [string, ReactNode][] = [];
  if (c.owner_user_id) rows.push([t("contacts.owner"), nameOf(c.owner_user_id) ?? t("assignee.other")]);
  for (const [name, value] of Object.entries(c.custom)) rows.push([name, String(value)]);
  rows.push([t("contacts.source"), sourceName(c.source)], [t("contacts.created"), moment(c.created_at)], [t("contacts.changed"), moment(c.updated_at)]);
  return (
    <section className="card" aria-labelledby="fields">
      <header><h2 id="fields">{t("details.title")}</h2></header>
      <div className="inside">
        <dl className="facts-list">{rows.map(([name, value], i) => <div key={i}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
        {c.external_refs.length > 0 && <h3>{t("contacts.elsewhere")}</h3>}
        <ul className="elsewhere">
          {c.external_refs.map((r) => (
            <li key={r.connection_id + r.external_id}>
              <span>{r.url && /^https?:/.test(r.url) ? <a href={r.url} target="_blank" rel="noreferrer">{r.provider}</a> : r.provider}</span>
              <span className={"tag" + (r.sync_status === "failed" || r.sync_status === "conflict" ? " red" : "")}>{textOf("contacts.sync." + r.sync_status)}</span>
              {r.error && <small className="fault">{r.error}</small>}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
