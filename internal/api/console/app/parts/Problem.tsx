import { SoniqError } from "../api/client";
import { Icon } from "./Icon";
import { t, textOf } from "../words/words";

/** Says in words why a request failed, and what helps. fields has the labels of members that the page asks for. */
export function Problem({ error, retry, fields = {} }: { error: Error; retry?: () => void; fields?: Record<string, string> }) {
  const refusal = error instanceof SoniqError ? error : undefined;
  const allowed = refusal?.code === "invalid_state" ? ((refusal.problem["allowed_actions"] as string[] | undefined) ?? []) : [];
  return (
    <div className="problem" role="alert">
      <Icon name="alert" />
      <div>
        <p>{sentence(error)}</p>
        {refusal && refusal.violations.length > 0 && <ul>{refusal.violations.map((v) => <li key={v.field + v.code}>{fields[v.field] ?? v.field}: {v.message}</li>)}</ul>}
        {allowed.length > 0 && <p>{t("problem.allowed", { actions: allowed.map((action) => textOf("action." + action) ?? action).join(", ") })}</p>}
        {refusal?.requestId && <p className="soft">{t("problem.request", { id: refusal.requestId })}</p>}
      </div>
      {retry && <button type="button" className="button" onClick={retry}>{t("retry")}</button>}
    </div>
  );
}

/** Returns what went wrong. The texts of the API for a missing credential and a missing scope are for programs. */
function sentence(error: Error): string {
  if (error instanceof TypeError || error.message === "") return t("problem.network");
  if (!(error instanceof SoniqError)) return error.message;
  if (error.status === 401) return t("signin.ended");
  if (error.code === "insufficient_scope") return t("problem.scope");
  return String(error.problem["detail"] ?? error.problem["title"] ?? error.code);
}
