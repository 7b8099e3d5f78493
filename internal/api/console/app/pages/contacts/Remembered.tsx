import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { request } from "../../api/client";
import { queries, useRead, useScope } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { date, t, type Key } from "../../words/words";

/** What is remembered of the numbers of a contact. */
export function Remembered({ numbers }: { numbers: string[] }) {
  const [chosen, choose] = useState(numbers[0] ?? "");
  const memory = useRead("memory.caller", { path: { phone: chosen } });
  const write = useScope("contacts:write");
  const m = memory.data;
  return (
    <section className="card" aria-labelledby="memory">
      <header>
        <h2 id="memory">{t("memory.title")}</h2>
        {numbers.length > 1 && <label className="soft"><span className="hidden">{t("contacts.numbers")}</span><select className="input" value={chosen} onChange={(e) => choose(e.currentTarget.value)}>{numbers.map((n) => <option key={n} value={n}>{spaced(n)}</option>)}</select></label>}
      </header>
      <div className="inside">
        {memory.error && <Problem error={memory.error} retry={() => void memory.refetch()} />}
        {m?.summary && <div><h3><span className="machine"><Icon name="sparkles" size={14} /></span> {t("caller.about")}</h3><p className="said-text">{m.summary}</p></div>}
        {m && m.open_items.length > 0 && <div><h3>{t("caller.open")}</h3><ul className="dotted">{m.open_items.map((o) => <li key={o.call_id + o.text}><Link href={"/calls/" + o.call_id}>{o.text}</Link> <small className="soft">{date(o.at)}</small></li>)}</ul></div>}
        {m && m.sentiment_trend !== "unknown" && <p><span className="soft">{t("caller.mood")}:</span> {t(`trend.${m.sentiment_trend}` as Key)}</p>}
        {m && m.topics.length > 0 && <p className="tags">{m.topics.map((x) => <span className="tag" key={x.topic}>{x.topic}</span>)}</p>}
        {m && <div><h3>{t("memory.facts")}</h3>
          {m.facts.length === 0 ? <p className="soft">{t("memory.facts.none")}</p> : <ul className="dotted">{m.facts.map((f) => <li key={f.id}>{f.text} <small className="soft">{t(`memory.by.${f.source}` as Key)}, {date(f.at)}{f.expires_at && ", " + t("memory.until", { date: date(f.expires_at) })}</small></li>)}</ul>}</div>}
        {write && <NewFact phone={chosen} />}
      </div>
    </section>
  );
}

function NewFact({ phone }: { phone: string }) {
  const [text, setText] = useState("");
  const add = useMutation({
    mutationFn: () => request("memory.facts.add", { path: { phone }, body: { text: text.trim() } }),
    onSuccess: () => {
      setText("");
      return queries.invalidateQueries({ queryKey: ["memory.caller"] });
    },
  });
  return (
    <form className="new-fact" onSubmit={(e) => { e.preventDefault(); if (text.trim() !== "") add.mutate(); }}>
      <label className="field"><span>{t("memory.new")}</span><input maxLength={500} value={text} onChange={(e) => setText(e.currentTarget.value)} /></label>
      <button type="submit" className="button" disabled={text.trim() === "" || add.isPending}>{t("tags.add")}</button>
      {add.error && <Problem error={add.error} />}
    </form>
  );
}
