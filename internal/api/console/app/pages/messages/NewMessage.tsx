import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { useRead } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { Recipient, type Target } from "../../parts/Recipient";
import { t } from "../../words/words";
import { Composer } from "./Composer";

/** A message to a number or a contact. */
export function NewMessage({ to, back }: { to: string; back: string }) {
  const [, go] = useLocation();
  const [target, choose] = useState<Target | undefined>(to ? { name: spaced(to), number: to } : undefined);
  const numbers = useRead("me.numbers.list", { query: { limit: 100 } });
  const own = (numbers.data?.data ?? []).filter((n) => n.sms_enabled);
  const [chosen, setFrom] = useState("");
  const before = useRead("sms.conversations.list", { query: { q: to, limit: 5 } }, { enabled: to !== "" });
  const thread = before.data?.data.find((c) => c.peer_number === to && c.number_id);
  useEffect(() => { if (thread) go("/messages/" + thread.id, { replace: true }); }, [thread, go]);
  const from = chosen || (own.find((n) => n.shown) ?? own[0])?.number || "";
  return (
    <div className="thread new-message">
      <header className="thread-head"><Link className="back" href={back}><Icon name="left" size={16} />{t("messages.title")}</Link><h1>{t("messages.new")}</h1></header>
      {numbers.error && <Problem error={numbers.error} retry={() => void numbers.refetch()} />}
      {numbers.isSuccess && own.length === 0 ? <p className="empty">{t("messages.no_number")}</p> : (
        <>
          <div className="fields">
            <Recipient label={t("messages.to")} initial={target} onChoose={choose} />
            <label className="field"><span>{t("messages.from")}</span>
              <select value={from} onChange={(e) => setFrom(e.currentTarget.value)}>{own.map((n) => <option key={n.id} value={n.number}>{n.label ? `${n.label}, ${spaced(n.number)}` : spaced(n.number)}</option>)}</select></label>
          </div>
          <span className="space" />
          <Composer draft="new" from={from} to={target?.number} onSent={(m) => go("/messages/" + m.conversation_id)} />
        </>
      )}
    </div>
  );
}
