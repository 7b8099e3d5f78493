import { lazy, Suspense, useEffect } from "react";
import { useStore } from "../live/store";
import { Icon } from "../parts/Icon";
import { t } from "../words/words";
import { finding } from "./open";

const Find = lazy(() => import("./Find"));

const apple = /Mac|iPhone|iPad/.test(navigator.platform);

/** Opens Find, also by Ctrl K (⌘ K). What it shows is loaded when it is opened first. */
export function FindButton() {
  const open = useStore(finding);
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== "k" || !(apple ? e.metaKey : e.ctrlKey) || e.altKey || e.shiftKey) return;
      e.preventDefault();
      finding.set((now) => !now);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <button type="button" className="pill find-button" aria-haspopup="dialog" aria-keyshortcuts={apple ? "Meta+K" : "Control+K"} onClick={() => finding.set(true)}>
        <Icon name="search" size={16} /><span className="wide">{t("find.button")}</span><kbd className="wide" aria-hidden="true">{apple ? "⌘ K" : "Ctrl K"}</kbd>
      </button>
      {open && <Suspense fallback={null}><Find onClose={() => finding.set(false)} /></Suspense>}
    </>
  );
}
