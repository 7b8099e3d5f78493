import { useMutation } from "@tanstack/react-query";
import { useId, useState, type KeyboardEvent } from "react";
import { request, serverTime, type Message } from "../../api/client";
import { queries } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { t } from "../../words/words";
import { maxLength, segments } from "./segments";

/** What was typed and not sent, by conversation. It outlives the change to another page. */
const drafts = new Map<string, string>();

interface Props { draft: string; from: string; to: string | undefined; onSent?: (m: Message) => void }

/** A field for a message, with the number of its segments. Ctrl and Enter send it. */
export function Composer({ draft, from, to, onSent }: Props) {
  const [body, setBody] = useState(drafts.get(draft) ?? ""), [later, setLater] = useState(false), [at, setAt] = useState("");
  const hint = useId();
  const write = (text: string) => {
    setBody(text);
    drafts.set(draft, text);
  };
  const send = useMutation({
    mutationFn: () => request("sms.create", { body: { from, to: to ?? "", body, ...(later ? { send_at: new Date(at).toISOString() } : {}) } }),
    onSuccess: (m) => {
      write("");
      setLater(false);
      onSent?.(m);
      return queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("sms.conversations.") });
    },
  });
  const { count, left, plain } = segments(body), length = [...body].length;
  const ready = !!to && body.trim() !== "" && length <= maxLength && (!later || at !== "") && !send.isPending;
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && ready) send.mutate();
  };
  return (
    <form className="composer" onSubmit={(e) => { e.preventDefault(); if (ready) send.mutate(); }} onKeyDown={keys}>
      {send.error && <Problem error={send.error} />}
      <label><span className="hidden">{t("messages.write")}</span>
        <textarea className="input" rows={Math.min(6, Math.max(2, body.split("\n").length))} placeholder={t("messages.write")} value={body} aria-describedby={hint} onChange={(e) => write(e.currentTarget.value)} /></label>
      <p id={hint} className="small soft counts">
        {length > maxLength ? <span className="fault">{t("messages.too_long", { count: length - maxLength })}</span> : body === "" ? t("messages.keys") : t("messages.segments", { count, left })}
        {!plain && " " + t("messages.unicode")}
      </p>
      <div className="sending">
        {later && <label className="when"><span className="hidden">{t("messages.when")}</span><input type="datetime-local" className="input" required value={at} min={local(serverTime() + 60_000)} max={local(serverTime() + 35 * 86_400_000)} onChange={(e) => setAt(e.currentTarget.value)} /></label>}
        <button type="button" className="button" aria-pressed={later} onClick={() => { setLater(!later); setAt(local(serverTime() + 3_600_000)); }}><Icon name="clock" size={16} />{t("messages.later")}</button>
        <button type="submit" className="button primary" disabled={!ready}><Icon name="send" size={16} />{t(later ? "messages.schedule" : "messages.send")}</button>
      </div>
    </form>
  );
}

/** Returns a time as a field for date and time has it. */
function local(ms: number): string {
  const d = new Date(ms);
  return new Date(ms - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
