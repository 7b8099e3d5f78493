import { useMutation } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { request, type Contact } from "../../api/client";
import { queries, useRead, useScope } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Avatar } from "../../parts/Avatar";
import { CallButton } from "../../parts/CallButton";
import { Confirm } from "../../parts/Confirm";
import { Icon } from "../../parts/Icon";
import { PhoneNumber } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { TextButton } from "../../parts/TextButton";
import { Title } from "../../parts/Title";
import { t } from "../../words/words";
import { Marks } from "./Contacts";
import { Fields } from "./Fields";
import { History } from "./History";
import { Remembered } from "./Remembered";

/** Refreshes everything that shows contacts. What is kept of a contact that is gone is forgotten. */
export function refreshContacts(gone?: string): Promise<void> {
  if (gone) queries.removeQueries({ predicate: (q) => isOf(q.queryKey, gone) });
  return queries.invalidateQueries({ predicate: (q) => /^(contacts|memory|sms\.conversations|voicemail)\./.test(String(q.queryKey[0])) && !(gone && isOf(q.queryKey, gone)) });
}

/** Whether an answer of the API is about one record. */
const isOf = (key: readonly unknown[], id: string): boolean => (key[1] as { path?: { id?: string } } | undefined)?.path?.id === id;

export const Back = ({ to, text }: { to: string; text: string }) => <p><Link className="back" href={to}><Icon name="left" size={16} />{text}</Link></p>;

/** One contact: numbers and fields, what happened, and what is remembered. */
export default function ContactPage({ id }: { id: string }) {
  const found = useRead("contacts.get", { path: { id } });
  const mayRemember = useScope("memory:read"), calls = useScope("calls:read");
  if (found.error && !found.data) return <div className="sheet"><Back to="/contacts" text={t("contacts.title")} /><Title text={t("contacts.one")} /><Problem error={found.error} retry={() => void found.refetch()} /></div>;
  if (!found.data) return <p className="loading" role="status">{t("loading")}</p>;
  const c = found.data;
  const numbers = c.phones.map((p) => p.number).filter((n) => n.startsWith("+"));
  return (
    <div className="sheet">
      <Back to="/contacts" text={t("contacts.title")} />
      <Head contact={c} />
      <div className="conversation">
        <div className="column">{calls && <History contact={c} />}</div>
        <div className="column">
          <Numbers contact={c} />
          {mayRemember && numbers[0] && <Remembered key={numbers.join()} numbers={numbers} />}
          <Fields contact={c} />
        </div>
      </div>
    </div>
  );
}

function Head({ contact: c }: { contact: Contact }) {
  const name = c.name || c.company || t("contacts.unnamed");
  const write = useScope("contacts:write");
  return (
    <header className="call-head">
      <Avatar name={name} />
      <div>
        <Title text={name} />
        <p className="facts">{c.title && <span>{c.title}</span>}{c.company && c.company !== name && <span>{c.company}</span>}<Marks contact={c} />{c.tags.map((tag) => <Link className="tag" key={tag} href={"/contacts?tag=" + encodeURIComponent(tag)}>{tag}</Link>)}</p>
      </div>
      <div className="tools">
        {write && <Link className="button" href={`/contacts/${c.id}/edit`}><Icon name="pencil" size={16} />{t("contacts.edit")}</Link>}
        {write && <Link className="button" href={`/contacts/${c.id}/merge`}><Icon name="merge" size={16} />{t("contacts.merge")}</Link>}
        {write && <Delete contact={c} name={name} />}
        <AsRequest />
      </div>
    </header>
  );
}

function Delete({ contact: c, name }: { contact: Contact; name: string }) {
  const [, go] = useLocation();
  const remove = useMutation({
    mutationFn: () => request("contacts.delete", { path: { id: c.id } }),
    onSuccess: async () => {
      go("/contacts");
      await refreshContacts(c.id);
    },
  });
  return (
    <Confirm label={t("contacts.delete")} icon="trash" title={t("contacts.delete.title", { name })} action={t("contacts.delete")} busy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()}>
      <p>{t("contacts.delete.help")}</p>
    </Confirm>
  );
}

/** The numbers and addresses, each with what can be done. */
function Numbers({ contact: c }: { contact: Contact }) {
  const name = c.name || c.company || undefined;
  return (
    <section className="card" aria-labelledby="reach">
      <header><h2 id="reach">{t("contacts.reach")}</h2></header>
      <ul className="inside reach">
        {c.phones.length + c.emails.length === 0 && <li className="soft">{t("contacts.reach.none")}</li>}
        {c.phones.map((p) => (
          <li key={p.number + (p.extension ?? "")}>
            <span><PhoneNumber number={p.number} />{p.extension && <span> {t("contacts.extension", { extension: p.extension })}</span>}<small className="soft">{[p.label, p.primary && c.phones.length > 1 ? t("contacts.primary") : ""].filter(Boolean).join(" · ")}</small></span>
            <CallButton number={p.number} name={name} quiet /><TextButton number={p.number} name={name} quiet />
          </li>
        ))}
        {c.emails.map((e) => <li key={e.value}><span><a href={"mailto:" + encodeURIComponent(e.value)}>{e.value}</a><small className="soft">{[e.label, e.primary && c.emails.length > 1 ? t("contacts.primary") : ""].filter(Boolean).join(" · ")}</small></span></li>)}
      </ul>
    </section>
  );
}
