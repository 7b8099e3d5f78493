import { Link } from "wouter";
import { useScope } from "../api/query";
import { t } from "../words/words";
import { Icon } from "./Icon";
import { spaced } from "./PhoneNumber";

/** Leads to a new text message for a number. */
export function TextButton({ number, name, quiet = false }: { number: string; name: string | undefined; quiet?: boolean }) {
  const may = useScope("sms:write");
  if (!may || !number.startsWith("+")) return null;
  return <Link className={quiet ? "button quiet" : "button"} href={"/messages/new?to=" + encodeURIComponent(number)} aria-label={t("parts.text.name", { name: name ?? spaced(number) })}><Icon name="message" size={16} />{t("parts.text")}</Link>;
}
