import { Link, useSearchParams } from "wouter";
import type { Contact } from "../../api/client";
import { usePages } from "../../api/pages";
import { useScope } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Icon } from "../../parts/Icon";
import { More } from "../../parts/More";
import { PhoneNumber, spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { SearchField } from "../../parts/SearchField";
import { Title } from "../../parts/Title";
import { moment, t } from "../../words/words";

/** The list of contacts. Search and order are part of the address. */
export default function Contacts() {
  const [params, setParams] = useSearchParams();
  const q = params.get("q") ?? "", tag = params.get("tag") ?? "", sort = params.get("sort") === "recent" ? "-last_contacted_at" : "name";
  const write = useScope("contacts:write");
  const list = usePages("contacts.list", { query: { sort, ...(q ? { q } : {}), ...(tag ? { tag: [tag] } : {}) } });
  const change = (name: string, value: string) => setParams((before) => {
    const next = new URLSearchParams(before);
    if (value) next.set(name, value);
    else next.delete(name);
    return next;
  }, { replace: true });
  return (
    <div className="sheet">
      <Title text={t("contacts.title")}>
        <AsRequest />
        {write && <Link className="button" href="/contacts/import"><Icon name="upload" size={16} />{t("contacts.import")}</Link>}
        {write && <Link className="button primary" href="/contacts/new"><Icon name="plus" size={16} />{t("contacts.new")}</Link>}
      </Title>
      <form className="contact-filters" role="search" aria-label={t("filter.label")} onSubmit={(e) => e.preventDefault()}>
        <SearchField label={t("contacts.find")} value={q} onChange={(value) => change("q", value)} />
        <label className="field inline"><span>{t("contacts.order")}</span>
          <select value={sort === "name" ? "" : "recent"} onChange={(e) => change("sort", e.currentTarget.value)}><option value="">{t("contacts.order.name")}</option><option value="recent">{t("contacts.order.recent")}</option></select></label>
        {tag && <span className="tag">{tag}<button type="button" aria-label={t("tags.remove", { tag })} onClick={() => change("tag", "")}><Icon name="close" size={13} /></button></span>}
      </form>
      {list.error && <Problem error={list.error} retry={() => void list.refetch()} />}
      {list.rows.length > 0 && <Table rows={list.rows} />}
      {list.isPending && <p className="loading" role="status">{t("loading")}</p>}
      {list.isSuccess && list.rows.length === 0 && <p className="card empty">{q || tag ? t("contacts.none.found") : t("contacts.none")}</p>}
      {list.hasNextPage && <More busy={list.isFetchingNextPage} onMore={() => void list.fetchNextPage()} />}
    </div>
  );
}

function Table({ rows }: { rows: Contact[] }) {
  return (
    <div className="card scroll" role="region" aria-label={t("contacts.title")} tabIndex={0}>
      <table className="contacts">
        <thead><tr><th scope="col">{t("contacts.name")}</th><th scope="col">{t("contacts.company")}</th><th scope="col">{t("contacts.numbers")}</th><th scope="col">{t("tags.title")}</th><th scope="col" className="end">{t("contacts.last")}</th></tr></thead>
        <tbody>
          {rows.map((c) => (
            <tr key={c.id}>
              <td className="who"><span><Link href={"/contacts/" + c.id}>{c.name || c.company || spaced(c.phones[0]?.number ?? "") || t("contacts.unnamed")}</Link>{c.title && <small>{c.title}</small>}</span></td>
              <td>{c.company || <span className="soft">–</span>}</td>
              <td>{c.phones.slice(0, 2).map((p) => <span className="block" key={p.number + (p.extension ?? "")}><PhoneNumber number={p.number} /></span>)}{c.phones.length > 2 && <small>{t("contacts.more_numbers", { count: c.phones.length - 2 })}</small>}</td>
              <td><span className="tags"><Marks contact={c} />{c.tags.map((tag) => <Link className="tag" key={tag} href={"/contacts?tag=" + encodeURIComponent(tag)}>{tag}</Link>)}</span></td>
              <td className="end when">{c.last_contacted_at ? <time dateTime={c.last_contacted_at}>{moment(c.last_contacted_at)}</time> : <span className="soft">–</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Whether a contact is important, or does not want to be called. */
export function Marks({ contact }: { contact: Pick<Contact, "vip" | "do_not_call"> }) {
  return <>{contact.vip && <span className="tag accent"><Icon name="star" size={13} />{t("caller.vip")}</span>}{contact.do_not_call && <span className="tag red">{t("caller.do_not_call")}</span>}</>;
}
