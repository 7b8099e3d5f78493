import { Link, useSearchParams } from "wouter";
import type { Conversation } from "../../api/client";
import { usePages } from "../../api/pages";
import { useMe, useNames, useScope } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Avatar } from "../../parts/Avatar";
import { Icon } from "../../parts/Icon";
import { More } from "../../parts/More";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { SearchField } from "../../parts/SearchField";
import { Title } from "../../parts/Title";
import { moment, t, type Key } from "../../words/words";
import { NewMessage } from "./NewMessage";
import { Thread } from "./Thread";

const views = ["all", "unread", "mine", "closed"] as const;
type View = (typeof views)[number];

/** Text messages: the conversations, and the one of the address. The view and the search are part of the address. */
export default function Messages({ id }: { id: string | undefined }) {
  const [params, setParams] = useSearchParams();
  const view = views.find((v) => v === params.get("view")) ?? "all", q = params.get("q") ?? "";
  const search = params.size > 0 ? "?" + params.toString() : "";
  const write = useScope("sms:write");
  const change = (name: string, value: string) => setParams((before) => {
    const next = new URLSearchParams(before);
    if (value) next.set(name, value);
    else next.delete(name);
    return next;
  }, { replace: true });
  return (
    <div className={id ? "inbox chosen" : "inbox"}>
      <section className="side-list" aria-label={t("messages.list")}>
        <header>
          <Title text={t("messages.title")}>
            <AsRequest />
            {write && <Link className="button primary" href="/messages/new" aria-label={t("messages.new")}><Icon name="plus" size={16} />{t("messages.new.short")}</Link>}
          </Title>
          <Views current={view} query={q} />
          <SearchField label={t("messages.find")} value={q} onChange={(value) => change("q", value)} />
        </header>
        <List view={view} query={q} current={id} search={search} />
      </section>
      <section className="opened" aria-label={t("messages.thread")}>
        {id === undefined && <p className="empty">{t("messages.choose")}</p>}
        {id === "new" && <NewMessage to={params.get("to") ?? ""} back={"/messages"} />}
        {id !== undefined && id !== "new" && <Thread key={id} id={id} back={"/messages" + search} />}
      </section>
    </div>
  );
}

function Views({ current, query }: { current: View; query: string }) {
  const { user } = useMe();
  const shown = views.filter((v) => v !== "mine" || user);
  const address = (view: View) => {
    const params = new URLSearchParams({ ...(view === "all" ? {} : { view }), ...(query ? { q: query } : {}) });
    return "/messages" + (params.size > 0 ? "?" + params.toString() : "");
  };
  return (
    <nav className="segments views" aria-label={t("messages.views")}>
      {shown.map((v) => <Link key={v} href={address(v)} aria-current={v === current ? "true" : undefined}>{t(`messages.view.${v}` as Key)}</Link>)}
    </nav>
  );
}

/** Returns the query of the API for a view. */
function queryOf(view: View, q: string, user: string): Record<string, unknown> {
  const query: Record<string, unknown> = { status: view === "closed" ? ["closed"] : ["open", "snoozed"] };
  if (view === "unread") query["unread"] = "true";
  if (view === "mine") query["assignee_id"] = user;
  const text = q.trim();
  if (text) query["q"] = /^[+\d\s()./-]+$/.test(text) ? text.replace(/[^+\d]/g, "") : text;
  return query;
}

function List({ view, query, current, search }: { view: View; query: string; current: string | undefined; search: string }) {
  const { user } = useMe();
  const all = usePages("sms.conversations.list", { query: queryOf(view, query, user?.id ?? "") });
  const nameOf = useNames();
  return (
    <div className="rows">
      {all.error && <Problem error={all.error} retry={() => void all.refetch()} />}
      {all.isPending && <p className="loading" role="status">{t("loading")}</p>}
      {all.isSuccess && all.rows.length === 0 && <p className="empty">{query ? t("messages.none.found") : t(`messages.none.${view}` as Key)}</p>}
      <ul>{all.rows.map((c) => <Row key={c.id} conversation={c} current={c.id === current} address={`/messages/${c.id}${search}`} assignee={nameOf(c.assignee_id)} />)}</ul>
      {all.hasNextPage && <More busy={all.isFetchingNextPage} onMore={() => void all.fetchNextPage()} />}
    </div>
  );
}

function Row({ conversation: c, current, address, assignee }: { conversation: Conversation; current: boolean; address: string; assignee: string | undefined }) {
  const who = c.contact?.name || spaced(c.peer_number);
  return (
    <li className={c.unread_count > 0 ? "unread" : undefined}>
      <Link href={address} aria-current={current ? "true" : undefined}>
        <Avatar name={c.contact?.name || c.peer_number} />
        <span className="about">
          <span className="line"><strong>{who}</strong><time className="soft small" dateTime={c.last_message_at}>{moment(c.last_message_at)}</time></span>
          <span className="line"><span className="last">{c.last_message.direction === "outbound" && <span className="soft">{t("messages.we")} </span>}{c.last_message.body || t("messages.attachment")}</span>
            {c.unread_count > 0 && <span className="count" aria-label={t("messages.unread", { count: c.unread_count })}>{c.unread_count}</span>}</span>
          {(assignee || c.opted_out || c.status === "snoozed" || c.tags.length > 0) && (
            <span className="tags">
              {assignee && <span className="tag">{assignee}</span>}
              {c.opted_out && <span className="tag red">{t("messages.opted_out")}</span>}
              {c.status === "snoozed" && <span className="tag">{t("messages.snoozed")}</span>}
              {c.tags.map((tag) => <span className="tag" key={tag}>{tag}</span>)}
            </span>
          )}
        </span>
      </Link>
    </li>
  );
}
