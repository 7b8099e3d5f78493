import { useEffect, useRef, type ReactNode } from "react";
import { signedOut, signInAddress, SoniqError } from "../api/client";
import { useRead } from "../api/query";
import { useStore } from "../live/store";
import { Problem } from "../parts/Problem";
import { callsOf, phone, signOff } from "../phone/state";
import { t } from "../words/words";

/** Milliseconds within which a second way to the sign-in page means that signing in does not help. */
const loopTime = 10_000;

/** Shows its content to a person who is signed in. Others are led to the sign-in page and back. */
export function SignedIn({ children, onSignedIn }: { children: ReactNode; onSignedIn: () => void }) {
  const me = useRead("me.get", undefined, { staleTime: Number.POSITIVE_INFINITY });
  const started = useRef(false);
  const out = useStore(signedOut), inCall = callsOf(useStore(phone)).length > 0;
  const refused = me.error instanceof SoniqError && me.error.status === 401;
  useEffect(() => {
    if (me.data && !started.current) {
      started.current = true;
      onSignedIn();
    }
  }, [me.data, onSignedIn]);
  useEffect(() => { if (refused && mayLead()) location.replace(signInAddress()); }, [refused]);
  if (!window.isSecureContext) return <Notice title={t("signin.insecure")} text={t("signin.insecure.help")} />;
  if (me.data) return <>{children}{out && !inCall && <SignedOut />}</>;
  if (refused) return <Notice title={t("signin.needed")} text={t("signin.needed.help")} action />;
  if (me.error) return <main className="notice"><Problem error={me.error} /></main>;
  return <main className="notice" aria-busy="true"><p role="status">{t("loading")}</p></main>;
}

/** Reports whether the page may lead to the sign-in page: not twice within loopTime. */
function mayLead(): boolean {
  const before = Number(sessionStorage.getItem("soniq-signin") ?? 0);
  sessionStorage.setItem("soniq-signin", String(Date.now()));
  return window.isSecureContext && Date.now() - before > loopTime;
}

function Notice({ title, text, action = false }: { title: string; text: string; action?: boolean }) {
  return (
    <main className="notice">
      <h1>{title}</h1>
      <p>{text}</p>
      {action && <a className="button primary" href={signInAddress()}>{t("signin.again")}</a>}
    </main>
  );
}

/**
 * Covers the page when the session has ended, and leads back to the same place. Nobody could answer a call below it: the phone of this tab
 * ends its registration.
 */
function SignedOut() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { void signOff.get()?.(); }, []);
  useEffect(() => { if (!dialog.current?.open) dialog.current?.showModal(); }, []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="signed-out" onCancel={(e) => e.preventDefault()}>
      <h2 id="signed-out">{t("signin.ended")}</h2>
      <p>{t("signin.ended.help")}</p>
      <p className="actions"><a className="button primary" href={signInAddress()}>{t("signin.again")}</a></p>
    </dialog>
  );
}
