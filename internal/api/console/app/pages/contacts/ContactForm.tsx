import { useMutation } from "@tanstack/react-query";
import { useState, type Dispatch, type SetStateAction } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { request, SoniqError, type Contact, type Input } from "../../api/client";
import { useRead } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { t, type Key } from "../../words/words";
import { Back, refreshContacts } from "./ContactPage";

interface Line { value: string; label: string; primary: boolean; extension?: string | undefined }

/** A contact as the form has it. */
interface Draft {
  first_name: string; last_name: string; company: string; title: string; owner_user_id: string;
  phones: Line[]; emails: Line[]; tags: string; vip: boolean; do_not_call: boolean; custom: [name: string, value: string][];
}

function draftOf(c: Contact | undefined, phone: string): Draft {
  return {
    first_name: c?.first_name ?? "", last_name: c?.last_name ?? "", company: c?.company ?? "", title: c?.title ?? "", owner_user_id: c?.owner_user_id ?? "",
    phones: (c?.phones ?? [{ number: phone, label: "", primary: true }]).map((p) => ({ value: p.number, label: p.label ?? "", primary: p.primary ?? false, extension: p.extension })),
    emails: (c?.emails ?? []).map((e) => ({ value: e.value, label: e.label ?? "", primary: e.primary ?? false })),
    tags: (c?.tags ?? []).join(", "), vip: c?.vip ?? false, do_not_call: c?.do_not_call ?? false,
    custom: Object.entries(c?.custom ?? {}).map(([name, value]) => [name, String(value)]),
  };
}

/** What the API gets for a draft. */
function bodyOf(d: Draft) {
  const filled = (lines: Line[]) => lines.filter((l) => l.value.trim() !== "");
  return {
    first_name: d.first_name.trim(), last_name: d.last_name.trim(), company: d.company.trim(), title: d.title.trim(), owner_user_id: d.owner_user_id || null,
    phones: filled(d.phones).map((p) => ({ number: p.value.trim(), label: p.label.trim(), primary: p.primary, ...(p.extension ? { extension: p.extension } : {}) })),
    emails: filled(d.emails).map((e) => ({ value: e.value.trim(), label: e.label.trim(), primary: e.primary })),
    tags: d.tags.split(",").map((x) => x.trim()).filter(Boolean), vip: d.vip, do_not_call: d.do_not_call, custom: Object.fromEntries(d.custom.filter(([name]) => name !== "")),
  };
}

/** Returns the members that differ: others may have changed the rest meanwhile. A removed member of custom becomes null. */
function changed(before: Draft, now: Draft): Input<"contacts.update">["body"] {
  const old = bodyOf(before), next = bodyOf(now), all: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(next)) {
    if (JSON.stringify(value) !== JSON.stringify(old[name as keyof typeof old])) all[name] = value;
  }
  if (all["custom"]) all["custom"] = { ...Object.fromEntries(Object.keys(old.custom).map((name) => [name, null])), ...next.custom };
  return all as Input<"contacts.update">["body"];
}

/** The form of a contact that exists. */
export function EditContact({ id }: { id: string }) {
  const found = useRead("contacts.get", { path: { id } }, { staleTime: 0 });
  if (found.error && !found.data) return <div className="sheet"><Back to="/contacts" text={t("contacts.title")} /><Problem error={found.error} /></div>;
  if (!found.data) return <p className="loading" role="status">{t("loading")}</p>;
  return <Form contact={found.data} phone="" />;
}

/** The form of a new contact. The address may name a number. */
export function NewContact() {
  const [params] = useSearchParams();
  return <Form contact={undefined} phone={params.get("phone") ?? ""} />;
}

function Form({ contact, phone }: { contact: Contact | undefined; phone: string }) {
  const [, go] = useLocation();
  const [before] = useState(() => draftOf(contact, phone));
  const [draft, setDraft] = useState(before);
  const set = (members: Partial<Draft>) => setDraft((d) => ({ ...d, ...members }));
  const save = useMutation({
    mutationFn: () => {
      if (contact) return request("contacts.update", { path: { id: contact.id }, body: changed(before, draft) });
      const { owner_user_id, ...body } = bodyOf(draft);
      return request("contacts.create", { body: { ...body, ...(owner_user_id ? { owner_user_id } : {}) } as Input<"contacts.create">["body"] });
    },
    onSuccess: async (c) => {
      await refreshContacts();
      go("/contacts/" + c.id);
    },
  });
  const back = contact ? "/contacts/" + contact.id : "/contacts";
  const faults = save.error instanceof SoniqError ? save.error.violations : [];
  const text = (name: "first_name" | "last_name" | "company" | "title") => (
    <label className="field"><span>{t(name === "title" ? "contacts.job" : `contacts.${name}` as Key)}</span><input value={draft[name]} onChange={(e) => set({ [name]: e.currentTarget.value })} /></label>
  );
  const check = (name: "vip" | "do_not_call", label: Key) => <label className="check"><input type="checkbox" checked={draft[name]} onChange={(e) => set({ [name]: e.currentTarget.checked })} />{t(label)}</label>;
  return (
    <div className="sheet narrow">
      <Back to={back} text={contact ? contact.name || contact.company || t("contacts.one") : t("contacts.title")} />
      <Title text={contact ? t("contacts.edit.title") : t("contacts.new")} />
      <form className="card contact-form" onSubmit={(e) => { e.preventDefault(); save.mutate(); }}>
        <div className="two">{text("first_name")}{text("last_name")}{text("company")}{text("title")}</div>
        <Lines legend="contacts.numbers" add="contacts.add_number" type="tel" lines={draft.phones} faults={faults.filter((v) => v.field.startsWith("phones"))} onChange={(phones) => set({ phones })} />
        <Lines legend="contacts.emails" add="contacts.add_email" type="email" lines={draft.emails} faults={faults.filter((v) => v.field.startsWith("emails"))} onChange={(emails) => set({ emails })} />
        <div className="two">
          <label className="field"><span>{t("contacts.tags")}</span><input value={draft.tags} onChange={(e) => set({ tags: e.currentTarget.value })} /></label>
          <Owner draft={draft} set={setDraft} />
        </div>
        <div className="checks">{check("vip", "caller.vip")}{check("do_not_call", "caller.do_not_call")}</div>
        {draft.custom.length > 0 && <fieldset><legend>{t("contacts.custom")}</legend>{draft.custom.map(([name, value], i) => <label className="field" key={name}><span>{name}</span><input value={value} onChange={(e) => set({ custom: draft.custom.map((x, k) => (k === i ? [name, e.currentTarget.value] : x)) })} /></label>)}</fieldset>}
        {save.error && (faults.length > 0 && faults.every((v) => /^(phones|emails)\./.test(v.field)) ? <p className="fault" role="alert">{t("contacts.check")}</p> : <Problem error={save.error} />)}
        <p className="actions"><Link className="button" href={back}>{t("cancel")}</Link><button type="submit" className="button primary" disabled={save.isPending}>{t("save")}</button></p>
      </form>
    </div>
  );
}

function Owner({ draft, set }: { draft: Draft; set: Dispatch<SetStateAction<Draft>> }) {
  const agents = useRead("agents.list", { query: { limit: 100 } }, { staleTime: 300_000 });
  const all = agents.data?.data ?? [];
  return (
    <label className="field"><span>{t("contacts.owner")}</span>
      <select value={draft.owner_user_id} onChange={(e) => { const owner_user_id = e.currentTarget.value; set((d) => ({ ...d, owner_user_id })); }}>
        <option value="">{t("assignee.nobody")}</option>
        {draft.owner_user_id && !all.some((a) => a.id === draft.owner_user_id) && <option value={draft.owner_user_id}>{t("assignee.other")}</option>}
        {all.map((a) => <option key={a.id} value={a.id}>{a.name}</option>)}
      </select>
    </label>
  );
}

interface LinesProps { legend: Key; add: Key; type: "tel" | "email"; lines: Line[]; faults: { field: string; message: string }[]; onChange: (lines: Line[]) => void }

/** Numbers or addresses: each with a kind, one of them the first choice. */
function Lines({ legend, add, type, lines, faults, onChange }: LinesProps) {
  const change = (at: number, members: Partial<Line>) => onChange(lines.map((l, i) => (i === at ? { ...l, ...members } : l)));
  return (
    <fieldset>
      <legend>{t(legend)}</legend>
      {lines.map((l, i) => {
        const n = String(i + 1), fault = faults.find((f) => f.field.split(".")[1] === String(i));
        return (
          <div className="contact-line" key={i}>
            <input className="input" type={type} aria-label={t(`${legend}.one` as Key, { n })} aria-invalid={fault ? true : undefined} value={l.value} onChange={(e) => change(i, { value: e.currentTarget.value })} />
            <input className="input" aria-label={t("contacts.label", { n })} placeholder={t("contacts.label.example")} value={l.label} onChange={(e) => change(i, { label: e.currentTarget.value })} />
            <label className="check"><input type="radio" name={legend} checked={l.primary} onChange={() => onChange(lines.map((x, k) => ({ ...x, primary: k === i })))} />{t("contacts.primary")}</label>
            <button type="button" className="button quiet" aria-label={t("contacts.remove", { n })} onClick={() => onChange(lines.filter((_, k) => k !== i))}><Icon name="trash" size={16} /></button>
            {fault && <p className="fault small">{fault.message}</p>}
          </div>
        );
      })}
      <button type="button" className="button quiet" onClick={() => onChange([...lines, { value: "", label: "", primary: lines.length === 0 }])}><Icon name="plus" size={16} />{t(add)}</button>
    </fieldset>
  );
}
