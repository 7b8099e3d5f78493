import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../../api/client";
import { queries, useMe } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { t } from "../../words/words";

/** Roles that an invitation may give, lowest first. The server refuses one above that of the person. */
const roles = ["viewer", "agent", "supervisor", "admin"] as const;

/** Invites a colleague, by mail or by a link that is shown once. */
export function Invite() {
  const { organization } = useMe();
  const [person, setPerson] = useState({ email: "", first_name: "", last_name: "", role: "agent" });
  const [copied, setCopied] = useState(false);
  const invite = useMutation({
    // The colleague uses the browser as a phone: no SIP account that nobody asked for.
    mutationFn: () => request("users.create", { body: { ...person, provision_sip: false } }),
    onSuccess: () => {
      setCopied(false);
      setPerson({ email: "", first_name: "", last_name: "", role: "agent" });
      return queries.invalidateQueries({ predicate: (q) => ["users.list", "agents.list"].includes(String(q.queryKey[0])) });
    },
  });
  const field = (name: "email" | "first_name" | "last_name", type: string, required: boolean) => (
    <label className="field"><span>{t(`invite.${name}`)}</span><input type={type} required={required} autoComplete="off" value={person[name]} onChange={(e) => { const { value } = e.currentTarget; setPerson((before) => ({ ...before, [name]: value })); }} /></label>
  );
  const made = invite.data, link = made?.invitation?.url;
  return (
    <>
      <p>{t("invite.help", { organisation: organization.name })}</p>
      <form className="invite" aria-label={t("invite.title")} onSubmit={(e) => { e.preventDefault(); invite.mutate(); }}>
        {field("first_name", "text", true)}{field("last_name", "text", false)}{field("email", "email", true)}
        <label className="field"><span>{t("invite.role")}</span><select value={person.role} onChange={(e) => { const { value } = e.currentTarget; setPerson((before) => ({ ...before, role: value })); }}>{roles.map((r) => <option key={r} value={r}>{t(`profile.role.${r}`)}</option>)}</select></label>
        <button type="submit" className="button primary" disabled={invite.isPending}>{t("invite.send")}</button>
      </form>
      {invite.error && <Problem error={invite.error} fields={{ email: t("invite.email"), first_name: t("invite.first_name"), last_name: t("invite.last_name"), role: t("invite.role") }} />}
      {made && !link && <p role="status">{t("invite.sent", { name: made.name, email: made.email })}</p>}
      {made && link && (
        <div className="invited" role="status">
          <p>{t("invite.link", { name: made.name })}</p>
          <div className="request-line"><input className="input" readOnly aria-label={t("invite.link.label")} value={link} onFocus={(e) => e.currentTarget.select()} />
            <button type="button" className="button" onClick={() => void navigator.clipboard.writeText(link).then(() => setCopied(true))}><Icon name={copied ? "check" : "share"} size={15} />{t(copied ? "copied" : "copy")}</button></div>
        </div>
      )}
    </>
  );
}
