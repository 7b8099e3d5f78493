import { useRead, useScope } from "../api/query";
import { t } from "../words/words";

/** Who looks after something, and a choice of others. */
export function Assignee({ id, onChoose, busy }: { id: string | null; onChoose: ((id: string | null) => void) | undefined; busy: boolean }) {
  const agents = useRead("agents.list", { query: { limit: 100 } }, { enabled: useScope("queues:read", "calls:read"), staleTime: 300_000 });
  const all = agents.data?.data ?? [];
  const name = id ? (all.find((a) => a.id === id)?.name ?? t("assignee.other")) : t("assignee.nobody");
  if (!onChoose || !agents.data) return <span className="soft">{t("assignee.is", { name })}</span>;
  return (
    <label className="assignee">
      <span className="soft small">{t("assignee.label")}</span>
      <select className="input" value={id ?? ""} disabled={busy} onChange={(e) => onChoose(e.currentTarget.value || null)}>
        <option value="">{t("assignee.nobody")}</option>
        {id && !all.some((a) => a.id === id) && <option value={id}>{name}</option>}
        {all.map((a) => <option key={a.id} value={a.id}>{a.name}</option>)}
      </select>
    </label>
  );
}
