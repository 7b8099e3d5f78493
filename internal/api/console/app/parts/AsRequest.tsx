import { useRef } from "react";
import { sentRequests, type SentRequest } from "../api/client";
import { useStore } from "../live/store";
import { t } from "../words/words";
import { Icon } from "./Icon";

/** Shows the requests of the page as lines for a shell. */
export function AsRequest() {
  const dialog = useRef<HTMLDialogElement>(null);
  const all = useStore(sentRequests);
  return (
    <>
      <button type="button" className="button quiet" onClick={() => dialog.current?.showModal()}><Icon name="code" size={16} />{t("request.show")}</button>
      <dialog ref={dialog} className="dialog broad" aria-labelledby="as-request">
        <h2 id="as-request">{t("request.show")}</h2>
        <p>{t("request.help")}</p>
        <pre tabIndex={0} aria-label={t("request.show")}>{all.length > 0 ? all.map(curl).join("\n\n") : t("request.none")}</pre>
        <p className="actions">
          <button type="button" className="button" onClick={() => void navigator.clipboard.writeText(all.map(curl).join("\n"))}>{t("copy")}</button>
          <button type="button" className="button primary" onClick={() => dialog.current?.close()}>{t("close")}</button>
        </p>
      </dialog>
    </>
  );
}

/** Returns a request as a line for a shell. The key of the reader stands in a variable. */
export function curl({ method, path, body }: SentRequest): string {
  const parts = ["curl", ...(method === "GET" ? [] : ["-X " + method]), quote(location.origin + path), '-H "Authorization: Bearer $SONIQ_KEY"'];
  if (body !== undefined) parts.push('-H "Content-Type: application/json"', "-d " + quote(body));
  return parts.join(" ");
}

const quote = (text: string): string => "'" + text.replaceAll("'", "'\\''") + "'";
