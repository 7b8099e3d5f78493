import { Link, useSearchParams } from "wouter";
import type { Voicemail } from "../../api/client";
import { usePages } from "../../api/pages";
import { useNames } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Avatar } from "../../parts/Avatar";
import { Icon } from "../../parts/Icon";
import { More } from "../../parts/More";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { duration, moment, t, type Key } from "../../words/words";
import { Opened } from "./Opened";

const views = { new: ["new"], saved: ["read", "archived"], all: ["new", "read", "archived"] } as const;
type View = keyof typeof views;

/** The voicemail messages that the person may see, and the one of the address. The view is part of the address. */
export default function Voicemails({ id }: { id: string | undefined }) {
  const [params] = useSearchParams();
  const asked = params.get("view"), view: View = asked === "saved" || asked === "all" ? asked : "new";
  const search = view === "new" ? "" : "?view=" + view;
  return (
    <div className={id ? "inbox chosen" : "inbox"}>
      <section className="side-list" aria-label={t("voicemail.list")}>
        <header>
          <Title text={t("voicemail.title")}><AsRequest /></Title>
          <nav className="segments views" aria-label={t("voicemail.views")}>
            {(Object.keys(views) as View[]).map((v) => <Link key={v} href={"/voicemail" + (v === "new" ? "" : "?view=" + v)} aria-current={v === view ? "true" : undefined}>{t(`voicemail.view.${v}` as Key)}</Link>)}
          </nav>
        </header>
        <List view={view} current={id} search={search} />
      </section>
      <section className="opened" aria-label={t("voicemail.message")}>
        {id ? <Opened key={id} id={id} back={"/voicemail" + search} /> : <p className="empty">{t("voicemail.choose")}</p>}
      </section>
    </div>
  );
}

function List({ view, current, search }: { view: View; current: string | undefined; search: string }) {
  const all = usePages("voicemail.list", { query: { status: views[view] } });
  const nameOf = useNames();
  return (
    <div className="rows">
      {all.error && <Problem error={all.error} retry={() => void all.refetch()} />}
      {all.isPending && <p className="loading" role="status">{t("loading")}</p>}
      {all.isSuccess && all.rows.length === 0 && <p className="empty">{t(`voicemail.none.${view}` as Key)}</p>}
      <ul>{all.rows.map((v) => <Row key={v.id} message={v} current={v.id === current} address={`/voicemail/${v.id}${search}`} assignee={nameOf(v.assignee_id)} />)}</ul>
      {all.hasNextPage && <More busy={all.isFetchingNextPage} onMore={() => void all.fetchNextPage()} />}
    </div>
  );
}

function Row({ message: v, current, address, assignee }: { message: Voicemail; current: boolean; address: string; assignee: string | undefined }) {
  const text = v.ai_summary || v.transcript?.text;
  return (
    <li className={v.status === "new" ? "unread" : undefined}>
      <Link href={address} aria-current={current ? "true" : undefined}>
        <Avatar name={v.contact?.name || v.from_number} />
        <span className="about">
          <span className="line"><strong>{v.contact?.name || spaced(v.from_number)}</strong><time className="soft small" dateTime={v.received_at}>{moment(v.received_at)}</time></span>
          {text && <span className="last two-lines">{v.ai_summary && <span className="machine"><Icon name="sparkles" size={13} /> </span>}{text}</span>}
          <span className="tags small soft">
            <span className="figures">{duration(v.duration_seconds)}</span><span>{v.mailbox.name}</span>
            {v.status === "new" && <span className="tag accent">{t("voicemail.new")}</span>}
            {v.urgency === "high" && <span className="tag red">{t("voicemail.urgency.high")}</span>}
            {assignee && <span className="tag">{assignee}</span>}
          </span>
        </span>
      </Link>
    </li>
  );
}
