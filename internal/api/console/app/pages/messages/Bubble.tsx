import { useMutation } from "@tanstack/react-query";
import { request, type Message } from "../../api/client";
import { queries, useScope } from "../../api/query";
import { Icon, type IconName } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { moment, t, textOf, type Key } from "../../words/words";

const icons: Record<Message["status"], IconName | undefined> = {
  scheduled: "clock", queued: "clock", sending: "clock", sent: "check", delivered: "delivered", undelivered: "alert", failed: "alert", canceled: "close", received: undefined,
};

/** One message, with its time, its author and what became of it. */
export function Bubble({ message: m, last, author }: { message: Message; last: boolean; author: string | undefined }) {
  const ours = m.direction === "outbound", bad = m.status === "failed" || m.status === "undelivered";
  const waits = m.status === "scheduled" || m.status === "canceled";
  const icon = icons[m.status];
  const by = m.source === "flow" ? t("messages.by.flow") : m.source === "mcp" ? t("messages.by.assistant") : author;
  return (
    <article className={["bubble", ours ? "ours" : "theirs", bad ? "bad" : "", waits ? "waits" : ""].join(" ")} aria-label={t(ours ? "messages.sent_message" : "messages.received_message")}>
      {m.body && <p className="body">{m.body}</p>}
      {m.media.map((x, i) => <Attachment key={i} media={x} />)}
      {(last || ours) && (
        <p className="meta">
          <time dateTime={m.created_at}>{moment(m.created_at)}</time>
          {ours && by && (last || m.source !== "console") && <span className={m.source === "mcp" ? "machine" : undefined}>{m.source === "mcp" && <Icon name="sparkles" size={13} />} {by}</span>}
          {ours && <span className="status">{icon && <Icon name={icon} size={14} />}{m.status === "scheduled" && m.scheduled_at ? t("messages.scheduled_for", { when: moment(m.scheduled_at) }) : t(`messages.status.${m.status}` as Key)}</span>}
        </p>
      )}
      {bad && <p className="fault small">{(m.error && textOf("messages.fault." + m.error.code)) ?? m.error?.message ?? ""}{m.error?.carrier_code && " " + t("messages.fault.code", { code: m.error.carrier_code })}</p>}
      {m.status === "scheduled" && <Cancel id={m.id} />}
    </article>
  );
}

/** Cancels a message that waits for its time. */
function Cancel({ id }: { id: string }) {
  const write = useScope("sms:write");
  const cancel = useMutation({
    mutationFn: () => request("sms.cancel", { path: { id } }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sms.conversations.messages"] }),
  });
  if (!write) return null;
  return <>{cancel.error && <Problem error={cancel.error} />}<button type="button" className="button quiet" disabled={cancel.isPending} onClick={() => cancel.mutate()}>{t("messages.cancel")}</button></>;
}

/** A link to what was attached. Pictures of other hosts are not loaded into the page. */
function Attachment({ media }: { media: Message["media"][number] }) {
  const kind = media.content_type || t("messages.attachment");
  if (media.url.startsWith("data:")) return <p><a href={media.url} download="attachment"><Icon name="download" size={15} /> {kind}</a></p>;
  if (!/^https?:/.test(media.url)) return <p>{kind}</p>;
  return <p><a href={media.url} target="_blank" rel="noreferrer"><Icon name="download" size={15} /> {kind}, {new URL(media.url).host}</a></p>;
}
