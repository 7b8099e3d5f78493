import { SoniqError } from "../api/client";
import { Icon } from "./Icon";
import { t } from "../words/words";

/** Says in words why a request failed, and what helps. fields has the labels of members that the page asks for. */
export function Problem({ error, retry, fields = {} }: { error: Error; retry?: () => void; fields?: Record<string, string> }) {
  const refusal = error instanceof SoniqError ? error : undefined;
  const needed = refusal?.code === "insufficient_scope";
  return (
    <div className="problem" role="alert">
      <Icon name="alert" />
      <div>
        <p>{refusal ? (needed ? t("problem.scope") : String(refusal.problem["detail"] ?? refusal.problem["title"] ?? refusal.code)) : t("problem.network")}</p>
        {refusal && refusal.violations.length > 0 && <ul>{refusal.violations.map((v) => <li key={v.field + v.code}>{fields[v.field] ?? v.field}: {v.message}</li>)}</ul>}
        {refusal?.requestId && <p className="soft">{t("problem.request", { id: refusal.requestId })}</p>}
      </div>
      {retry && <button type="button" className="button" onClick={retry}>{t("retry")}</button>}
    </div>
  );
}
