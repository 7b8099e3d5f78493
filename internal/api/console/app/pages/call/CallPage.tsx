import { lazy, Suspense } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { Link, useLocation } from "wouter";
import type { Call } from "../../api/client";
import { otherParty, useNames, useRead, useScope } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Avatar } from "../../parts/Avatar";
import { Direction, isRunning, State } from "../../parts/CallState";
import { Icon } from "../../parts/Icon";
import { PhoneNumber, spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { duration, moment, t, type Key } from "../../words/words";
import { Conversation } from "./Conversation";
import { Deliveries } from "./Deliveries";
import { Quality } from "./Quality";
import { Timeline } from "./Timeline";

// Few look at it, and it needs a list.
const Signalling = lazy(async () => ({ default: (await import("./Signalling")).Signalling }));

const tabs = ["conversation", "timeline", "signalling", "quality", "deliveries"] as const;

/** Everything about one call. The tab is part of the address. */
export default function CallPage({ id, tab }: { id: string; tab: string }) {
  const call = useRead("calls.get", { path: { id } });
  const [, go] = useLocation();
  const nameOf = useNames(), maySeeSignalling = useScope("users:admin");
  if (call.error && !call.data) return <div className="sheet"><Back /><Title text={t("call.title")} /><Problem error={call.error} retry={() => void call.refetch()} /></div>;
  if (!call.data) return <p className="loading" role="status">{t("loading")}</p>;
  const open = tabs.filter((name) => name !== "signalling" || maySeeSignalling);
  const current = open.find((name) => name === tab) ?? "conversation";
  return (
    <div className="sheet">
      <Back />
      <Head call={call.data} agent={nameOf(call.data.agent_id)} queue={nameOf(call.data.queue_id)} />
      <Tabs className="tabs" selectedKey={current} onSelectionChange={(key) => go(`/calls/${id}/${String(key)}${location.hash}`, { replace: true })}>
        <TabList aria-label={t("call.title")}>{open.map((name) => <Tab key={name} id={name}>{t(`call.tab.${name}` as Key)}</Tab>)}</TabList>
        <TabPanel id="conversation"><Conversation call={call.data} /></TabPanel>
        <TabPanel id="timeline"><Timeline call={call.data} /></TabPanel>
        {maySeeSignalling && <TabPanel id="signalling"><Suspense fallback={<p className="loading" role="status">{t("loading")}</p>}><Signalling call={call.data} /></Suspense></TabPanel>}
        <TabPanel id="quality"><Quality call={call.data} /></TabPanel>
        <TabPanel id="deliveries"><Deliveries call={call.data} /></TabPanel>
      </Tabs>
    </div>
  );
}

function Back() { return <p><Link className="back" href="/calls"><Icon name="left" size={16} />{t("calls.title")}</Link></p>; }

/** Who spoke with whom, and when. */
function Head({ call, agent, queue }: { call: Call; agent: string | undefined; queue: string | undefined }) {
  const { name, number } = otherParty(call);
  const who = name ?? spaced(number);
  const facts = [moment(call.started_at, true)];
  if (call.talk_duration_seconds > 0) facts.push(t("call.talked", { time: duration(call.talk_duration_seconds) }));
  if (call.queue_seconds > 0) facts.push(t("call.waited", { time: duration(call.queue_seconds) }));
  return (
    <header className="call-head">
      <Avatar name={name ?? number} />
      <div>
        <Title text={sentence(call, who, agent, queue)} />
        <p className="facts">
          <Direction call={call} /><span><PhoneNumber number={number} /> · {facts.join(" · ")}</span>
          {(isRunning(call) || call.status !== "completed") && <State call={call} />}
          {call.disposition && <span className="tag green">{call.disposition}</span>}
          {call.tags.map((tag) => <span className="tag" key={tag}>{tag}</span>)}
        </p>
      </div>
      <AsRequest />
    </header>
  );
}

/** Says in a sentence who called whom. */
function sentence(call: Call, who: string, agent: string | undefined, queue: string | undefined): string {
  if (call.direction === "outbound") return agent ? t("call.sentence.agent_called", { who, agent }) : t("call.sentence.outbound", { who });
  const target = queue ?? spaced(call.to_number);
  return agent ? t("call.sentence.answered", { who, target, agent }) : t("call.sentence.inbound", { who, target });
}
