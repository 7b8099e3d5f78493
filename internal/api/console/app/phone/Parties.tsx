import { useMutation } from "@tanstack/react-query";
import { request, type Call } from "../api/client";
import { queries, useMe, useNames } from "../api/query";
import { Icon } from "../parts/Icon";
import { spaced } from "../parts/PhoneNumber";
import { t, textOf } from "../words/words";
import { transferRuns, type useAction } from "./CallBar";
import { change, type PhoneCall } from "./state";

type Leg = NonNullable<Call["legs"]>[number];

const present = (leg: Leg): boolean => leg.status !== "ended" && leg.status !== "failed" && ["caller", "callee", "agent"].includes(leg.role);

/** Who else is in the call: the one that it is handed to, or those that were added. */
export default function Parties({ call, record, action }: { call: PhoneCall; record: Call; action: ReturnType<typeof useAction> }) {
  const nameOf = useNames();
  const legs = record.legs ?? [];
  if (transferRuns(record)) return <Transfer call={call} record={record} action={action} who={targetOf(record, legs, nameOf)} />;
  return (
    <>
      {record.transfer?.status === "failed" && <p className="line warning" role="status"><Icon name="alert" size={16} />{t("transfer.failed", { who: targetOf(record, legs, nameOf), why: reason(record.transfer.failure_reason) })}</p>}
      <Others call={call} legs={legs} nameOf={nameOf} />
    </>
  );
}

const reason = (code: string | null): string => textOf("transfer.reason." + (code ?? "")) ?? code ?? "";

/** Returns the name of whom the call is handed to. */
function targetOf(record: Call, legs: Leg[], nameOf: (id: string | null | undefined) => string | undefined): string {
  const { to = "", target_leg_id: id } = record.transfer ?? {};
  const leg = legs.find((l) => l.id === id);
  return nameOf(leg?.user_id) ?? nameOf(to.replace(/^(user|queue):/, "")) ?? spaced(leg?.number ?? to.replace(/^(ext|user|queue):/, ""));
}

/** The call while it is handed over. */
function Transfer({ call, record, action, who }: { call: PhoneCall; record: Call; action: ReturnType<typeof useAction>; who: string }) {
  const asking = record.transfer?.status === "consulting", blind = record.transfer?.mode === "blind";
  const other = call.name ?? spaced(call.number);
  return (
    <div className="line transfer" role="group" aria-label={t("transfer.label")}>
      <p role="status"><Icon name="handover" size={16} />{asking ? t("transfer.asking", { who, other }) : t(blind ? "transfer.blind" : "transfer.ringing", { who, other })}</p>
      {asking && <button type="button" className="button primary" disabled={action.isPending} onClick={() => action.mutate({ action: "calls.transfer.complete" })}><Icon name="check" />{t("transfer.complete")}</button>}
      {asking && <button type="button" className="button" disabled={action.isPending} onClick={() => action.mutate({ action: "calls.transfer.complete", body: { mode: "conference" } })}><Icon name="users" />{t("transfer.all")}</button>}
      <button type="button" className="button" disabled={action.isPending} onClick={() => action.mutate({ action: "calls.transfer.cancel" })}><Icon name="left" />{t("transfer.back")}</button>
    </div>
  );
}

/** The parties of a call of more than two. */
function Others({ call, legs, nameOf }: { call: PhoneCall; legs: Leg[]; nameOf: (id: string | null | undefined) => string | undefined }) {
  const me = useMe().user?.id;
  const remove = useMutation({
    mutationFn: (leg: string) => request("calls.participants.remove", { path: { id: call.id ?? "", leg_id: leg } }),
    onMutate: () => change({ problem: undefined }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["calls.get"] }),
    onError: (problem) => change({ problem }),
  });
  const others = legs.filter((leg) => present(leg) && leg.user_id !== me);
  if (others.length < 2) return null;
  const name = (leg: Leg) => nameOf(leg.user_id) ?? (leg.number === call.number ? call.name : undefined) ?? spaced(leg.number);
  return (
    <ul className="line parties" aria-label={t("parties.label")}>
      {others.map((leg) => (
        <li key={leg.id} className="tag">
          {name(leg)}{leg.status === "ringing" && <> · {t("bar.ringing")}</>}
          <button type="button" aria-label={t("parties.remove", { who: name(leg) })} disabled={remove.isPending} onClick={() => remove.mutate(leg.id)}><Icon name="close" size={14} /></button>
        </li>
      ))}
    </ul>
  );
}
