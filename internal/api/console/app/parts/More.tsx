import { useEffect, useRef } from "react";
import { t } from "../words/words";

/** A button for the next page of a list, which also presses itself when it comes into view. */
export function More({ busy, onMore }: { busy: boolean; onMore: () => void }) {
  const button = useRef<HTMLButtonElement>(null), more = useRef(onMore);
  more.current = onMore;
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => { if (!busy && entries.some((e) => e.isIntersecting)) more.current(); }, { rootMargin: "400px" });
    if (button.current) seen.observe(button.current);
    return () => seen.disconnect();
  }, [busy]);
  return <p className="more"><button ref={button} type="button" className="button" onClick={onMore} disabled={busy}>{busy ? t("loading") : t("calls.more")}</button></p>;
}
