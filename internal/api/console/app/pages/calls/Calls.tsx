import { Link, useSearchParams } from "wouter";
import type { Call } from "../../api/client";
import { otherParty, useCalls, useNames } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Direction, State } from "../../parts/CallState";
import { Icon } from "../../parts/Icon";
import { Mood } from "../../parts/Mood";
import { More } from "../../parts/More";
import { PhoneNumber } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { duration, moment, t } from "../../words/words";
import { Filters, queryOf } from "./Filters";

/** The list of calls. Its filters are in the address. */
export default function Calls() {
  const [params, setParams] = useSearchParams();
  const calls = useCalls(queryOf(params));
  const rows = calls.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <div className="sheet">
      <Title text={t("calls.title")}><AsRequest /></Title>
      <Filters params={params} onChange={setParams} />
      {calls.error && <Problem error={calls.error} retry={() => void calls.refetch()} />}
      {rows.length > 0 && <Table rows={rows} />}
      {calls.isPending && <p className="loading" role="status">{t("loading")}</p>}
      {calls.isSuccess && rows.length === 0 && <p className="card empty">{params.size > 0 ? t("calls.none.filtered") : t("calls.none")}</p>}
      {calls.hasNextPage && <More busy={calls.isFetchingNextPage} onMore={() => void calls.fetchNextPage()} />}
    </div>
  );
}

function Table({ rows }: { rows: Call[] }) {
  const nameOf = useNames();
  return (
    <div className="card scroll" role="region" aria-label={t("calls.title")} tabIndex={0}>
      <table className="calls">
        <thead>
          <tr>
            <th scope="col">{t("calls.who")}</th><th scope="col">{t("calls.state")}</th><th scope="col">{t("calls.agent")}</th>
            <th scope="col">{t("calls.about")}</th><th scope="col" className="end">{t("calls.talked")}</th><th scope="col" className="end">{t("calls.when")}</th>
          </tr>
        </thead>
        <tbody>{rows.map((call) => <Row key={call.id} call={call} agent={nameOf(call.agent_id)} queue={nameOf(call.queue_id)} />)}</tbody>
      </table>
    </div>
  );
}

function Row({ call, agent, queue }: { call: Call; agent: string | undefined; queue: string | undefined }) {
  const { name, number } = otherParty(call);
  return (
    <tr>
      <td className="who">
        <Direction call={call} />
        <span><Link href={"/calls/" + call.id}>{name ?? <PhoneNumber number={number} />}</Link>{name && <small><PhoneNumber number={number} /></small>}</span>
      </td>
      <td><State call={call} /></td>
      <td>{agent ?? <span className="soft">–</span>}{queue && <small>{queue}</small>}</td>
      <td className="about">
        {call.ai_summary && <p className="machine-text"><span className="machine"><Icon name="sparkles" size={14} /></span>{call.ai_summary}</p>}
        <span className="tags">{call.sentiment && <Mood mood={call.sentiment} />}{call.tags.map((tag) => <span className="tag" key={tag}>{tag}</span>)}</span>
      </td>
      <td className="end">{call.talk_duration_seconds > 0 ? duration(call.talk_duration_seconds) : <span className="soft">–</span>}</td>
      <td className="end when"><time dateTime={call.started_at}>{moment(call.started_at, true)}</time></td>
    </tr>
  );
}
