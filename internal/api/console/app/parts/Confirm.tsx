import { useId, useRef, type ReactNode } from "react";
import { t } from "../words/words";
import { Icon, type IconName } from "./Icon";
import { Problem } from "./Problem";

interface Props { label: string; icon: IconName; title: string; action: string; busy: boolean; error: Error | null; onConfirm: () => void; children: ReactNode }

/** A button that asks before it does what cannot be undone. */
export function Confirm({ label, icon, title, action, busy, error, onConfirm, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null), id = useId();
  return (
    <>
      <button type="button" className="button" onClick={() => dialog.current?.showModal()}><Icon name={icon} size={16} />{label}</button>
      <dialog ref={dialog} className="dialog" aria-labelledby={id}>
        <h2 id={id}>{title}</h2>
        {children}
        {error && <Problem error={error} />}
        <p className="actions">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>{t("cancel")}</button>
          <button type="button" className="button danger" disabled={busy} onClick={onConfirm}>{action}</button>
        </p>
      </dialog>
    </>
  );
}
