import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { request, type Contact } from "../../api/client";
import { useNames, useRead } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { SearchField } from "../../parts/SearchField";
import { Title } from "../../parts/Title";
import { t } from "../../words/words";
import { Back, refreshContacts } from "./ContactPage";
import { sourceName } from "./Fields";

const nameOf = (c: Contact): string => c.name || c.company || t("contacts.unnamed");

/** Merges two contacts. Both are shown side by side before. */
export function Merge({ id }: { id: string }) {
  const [, go] = useLocation();
  const [other, choose] = useState<string | undefined>(), [swapped, swap] = useState(false);
  const a = useRead("contacts.get", { path: { id } }), b = useRead("contacts.get", { path: { id: other ?? "-" } }, { enabled: other !== undefined });
  const stays = swapped ? b.data : a.data, goes = swapped ? a.data : b.data;
  const merge = useMutation({
    mutationFn: () => request("contacts.merge", { path: { id: stays?.id ?? "" }, body: { from_id: goes?.id ?? "" } }),
    onSuccess: async (c) => {
      go("/contacts/" + c.id, { replace: true });
      await refreshContacts(goes?.id);
    },
  });
  const fault = a.error ?? b.error;
  return (
    <div className="sheet narrow">
      <Back to={"/contacts/" + id} text={a.data ? nameOf(a.data) : t("contacts.one")} />
      <Title text={t("contacts.merge.title")} />
      {fault && <Problem error={fault} />}
      {a.data && other === undefined && <Choose contact={a.data} onChoose={choose} />}
      {stays && goes && other !== undefined && (
        <>
          <p>{t("contacts.merge.help")}</p>
          <Sides stays={stays} goes={goes} />
          {merge.error && <Problem error={merge.error} />}
          <p className="actions">
            <button type="button" className="button" onClick={() => choose(undefined)}>{t("contacts.merge.other")}</button>
            <button type="button" className="button" onClick={() => swap(!swapped)}><Icon name="swap" size={16} />{t("contacts.merge.swap")}</button>
            <button type="button" className="button danger" disabled={merge.isPending} onClick={() => merge.mutate()}><Icon name="merge" size={16} />{t("contacts.merge.do", { name: nameOf(goes) })}</button>
          </p>
        </>
      )}
    </div>
  );
}

/** The choice of the other contact. Those with the same name or company are offered. */
function Choose({ contact, onChoose }: { contact: Contact; onChoose: (id: string) => void }) {
  const [q, search] = useState(contact.last_name || contact.company);
  const found = useRead("contacts.list", { query: { q, limit: 12 } }, { enabled: q.trim() !== "", keep: true });
  const all = (q.trim() === "" ? [] : (found.data?.data ?? [])).filter((c) => c.id !== contact.id);
  return (
    <section className="card" aria-labelledby="choose">
      <header><h2 id="choose">{t("contacts.merge.choose", { name: nameOf(contact) })}</h2></header>
      <div className="inside">
        <SearchField label={t("contacts.find")} value={q} onChange={search} />
        {found.error && <Problem error={found.error} />}
        {found.isSuccess && all.length === 0 && <p className="soft">{t("contacts.none.found")}</p>}
        <ul className="choices">{all.map((c) => <li key={c.id}><button type="button" className="button" onClick={() => onChoose(c.id)}><span><strong>{nameOf(c)}</strong> <small className="soft">{[c.company !== nameOf(c) ? c.company : "", ...c.phones.map((p) => spaced(p.number))].filter(Boolean).join(" · ")}</small></span></button></li>)}</ul>
      </div>
    </section>
  );
}

/** Both contacts field by field, and what is there afterwards: what is missing is added, what is there stays. */
function Sides({ stays, goes }: { stays: Contact; goes: Contact }) {
  const userName = useNames();
  const one = (name: "first_name" | "last_name" | "company" | "title"): Row => [t(name === "title" ? "contacts.job" : `contacts.${name}`), [stays[name]], [goes[name]], [stays[name] || goes[name]]];
  const many = (label: string, of: (c: Contact) => string[]): Row => [label, of(stays), of(goes), [...new Set([...of(stays), ...of(goes)])]];
  const marks = (c: Contact) => [...(c.vip ? [t("caller.vip")] : []), ...(c.do_not_call ? [t("caller.do_not_call")] : [])];
  const owner = (c: Contact) => (c.owner_user_id ? [userName(c.owner_user_id) ?? t("assignee.other")] : []);
  const custom = [...new Set([...Object.keys(stays.custom), ...Object.keys(goes.custom)])].map((name): Row => {
    const [a, b] = [String(stays.custom[name] ?? ""), String(goes.custom[name] ?? "")];
    return [name, [a], [b], [a || b]];
  });
  const rows: Row[] = [
    one("first_name"), one("last_name"), one("company"), one("title"), many(t("contacts.numbers"), (c) => c.phones.map((p) => spaced(p.number))), many(t("contacts.emails"), (c) => c.emails.map((e) => e.value)),
    many(t("tags.title"), (c) => c.tags), many(t("contacts.marks"), marks), [t("contacts.owner"), owner(stays), owner(goes), owner(stays).length > 0 ? owner(stays) : owner(goes)],
    ...custom, [t("contacts.source"), [sourceName(stays.source)], [sourceName(goes.source)], [sourceName(stays.source)]],
  ];
  return (
    <div className="card scroll" role="region" aria-label={t("contacts.merge.title")} tabIndex={0}>
      <table className="sides">
        <thead><tr><th scope="col"><span className="hidden">{t("contacts.merge.field")}</span></th><th scope="col">{t("contacts.merge.stays")}</th><th scope="col">{t("contacts.merge.goes")}</th><th scope="col">{t("contacts.merge.result")}</th></tr></thead>
        <tbody>{rows.filter(([, a, b]) => [...a, ...b].some(Boolean)).map(([name, ...cells]) => <tr key={name}><th scope="row">{name}</th>{cells.map((values, i) => <td key={i} className={i === 2 ? "result" : undefined}>{values.filter(Boolean).length > 0 ? values.map((v) => <span className="block" key={v}>{v}</span>) : <span className="soft">–</span>}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

type Row = [name: string, stays: string[], goes: string[], result: string[]];
