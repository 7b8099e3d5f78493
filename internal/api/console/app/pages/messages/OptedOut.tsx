import type { Conversation } from "../../api/client";
import { useRead } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { date, t } from "../../words/words";

/** Says that and why nothing can be sent. */
export function OptedOut({ conversation: c }: { conversation: Conversation }) {
  const all = useRead("sms.opt_outs.list", { query: { limit: 100, ...(c.number_id ? { number_id: c.number_id } : {}) } });
  const found = all.data?.data.find((o) => o.phone === c.peer_number);
  const why = !found ? "" : found.source === "keyword" ? t("messages.opt_out.keyword", { keyword: found.keyword ?? "STOP", when: date(found.created_at) }) : t("messages.opt_out.api", { when: date(found.created_at) });
  return (
    <div className="closing opted-out" role="note">
      <Icon name="stop" />
      <div>
        <p><strong>{t("messages.opt_out.title", { number: spaced(c.org_number) })}</strong></p>
        <p>{why} {t("messages.opt_out.help")}</p>
      </div>
    </div>
  );
}
