import { useMutation } from "@tanstack/react-query";
import { request, type Call } from "../../api/client";
import { queries, useRead, useScope } from "../../api/query";
import { Problem } from "../../parts/Problem";
import { clock, t, textOf } from "../../words/words";
import type { CallEvent } from "./Timeline";

const text = (e: CallEvent, name: string): string => String(e.detail[name] ?? "");

/** The attempts to deliver events of a call to webhooks. */
export function Deliveries({ call }: { call: Call }) {
  const events = useRead("calls.events", { path: { id: call.id }, query: { limit: 200 } });
  const maySend = useScope("users:admin");
  if (events.error) return <Problem error={events.error} retry={() => void events.refetch()} />;
  if (!events.data) return <p className="loading" role="status">{t("loading")}</p>;
  const attempts = events.data.data.filter((e) => e.kind.startsWith("webhook."));
  if (attempts.length === 0) return <p className="card empty">{t("deliveries.none")}</p>;
  return (
    <div className="card scroll" role="region" aria-label={t("call.tab.deliveries")} tabIndex={0}>
      <table className="timeline">
        <thead><tr><th scope="col">{t("timeline.time")}</th><th scope="col">{t("deliveries.event")}</th><th scope="col">{t("deliveries.attempt")}</th><th scope="col">{t("deliveries.answer")}</th><th scope="col">{t("deliveries.state")}</th>{maySend && <th scope="col"><span className="hidden">{t("deliveries.again")}</span></th>}</tr></thead>
        <tbody>
          {attempts.map((e, i) => (
            <tr key={i}>
              <td><time dateTime={e.at}>{clock(e.at)}</time></td>
              <td>{e.kind.slice("webhook.".length)}<small>{text(e, "webhook_id")}</small></td>
              <td>{text(e, "attempt")}</td>
              <td>{[text(e, "response_status"), text(e, "error")].filter((x) => x !== "" && x !== "0").join(" ")}</td>
              <td>{textOf("delivery." + text(e, "status")) ?? text(e, "status")}</td>
              {maySend && <td className="end"><Again webhook={text(e, "webhook_id")} delivery={text(e, "delivery_id")} /></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Sends a delivery again. */
function Again({ webhook, delivery }: { webhook: string; delivery: string }) {
  const send = useMutation({
    mutationFn: () => request("webhooks.deliveries.replay", { path: { id: webhook, delivery_id: delivery } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["calls.events"] }),
  });
  if (send.error) return <Problem error={send.error} />;
  return <button type="button" className="button" disabled={send.isPending} onClick={() => send.mutate()}>{send.isSuccess ? t("deliveries.sent") : t("deliveries.again")}</button>;
}
