import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../../api/client";
import { queries, useRead, useReadIfPresent, useScope } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { t } from "../../words/words";

/** How the call ended: one of the outcomes of its queue, or a text if it was in none, or in one without outcomes. */
export function Outcome({ callID }: { callID: string }) {
  const call = useRead("calls.get", { path: { id: callID } });
  const queueID = call.data?.queue_id ?? "";
  const queue = useReadIfPresent("queues.get", { path: { id: queueID } }, useScope("queues:read") && queueID !== "");
  const [text, setText] = useState("");
  const set = useMutation({
    mutationFn: (code: string) => request("calls.disposition", { path: { id: callID }, body: { code } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["calls.get"] }),
  });
  const chosen = call.data?.disposition ?? "";
  const outcomes = queue.data?.dispositions ?? [];
  return (
    <div className="outcome">
      <span className="label" id="outcome">{t("outcome.title")}{queue.data?.disposition_required && <> · {t("outcome.required")}</>}</span>
      {outcomes.length > 0 ? (
        <div className="tags" role="group" aria-labelledby="outcome">
          {outcomes.map((o) => <button type="button" key={o.code} className="button" aria-pressed={chosen === o.code || chosen === o.label} onClick={() => set.mutate(o.code)}>{o.label}</button>)}
        </div>
      ) : (
        <form className="tags" onSubmit={(e) => { e.preventDefault(); if (text.trim() !== "") set.mutate(text.trim()); }}>
          <input className="input" aria-labelledby="outcome" maxLength={64} value={text} placeholder={chosen} onChange={(e) => setText(e.currentTarget.value)} />
          <button type="submit" className="button" disabled={text.trim() === "" || set.isPending}>{set.isSuccess && <Icon name="check" size={15} />}{t("outcome.set")}</button>
        </form>
      )}
      {set.error && <Problem error={set.error} />}
    </div>
  );
}
