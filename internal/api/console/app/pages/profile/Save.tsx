import type { ReactNode } from "react";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { t } from "../../words/words";

interface Parts { title: string; id: string; changed: boolean; state: { isPending: boolean; isSuccess: boolean; error: Error | null }; fields?: Record<string, string>; onSave: () => void; children: ReactNode }

/** A card with fields that are stored together. */
export function Save({ title, id, changed, state, fields = {}, onSave, children }: Parts) {
  return (
    <form className="card" aria-labelledby={id} onSubmit={(e) => { e.preventDefault(); onSave(); }}>
      <header><h2 id={id}>{title}</h2></header>
      <div className="inside">
        {children}
        {state.error && <Problem error={state.error} fields={fields} />}
        <p className="actions">
          <span className="soft small" role="status">{state.isSuccess && !changed && <><Icon name="check" size={15} /> {t("profile.saved")}</>}</span>
          <button type="submit" className="button primary" disabled={!changed || state.isPending}>{t("profile.save")}</button>
        </p>
      </div>
    </form>
  );
}
