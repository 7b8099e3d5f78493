import { Link } from "wouter";
import { useScope } from "../api/query";
import { t } from "../words/words";
import { Icon } from "./Icon";

/** Leads to the form for a new contact with a number. */
export function AddContact({ number }: { number: string }) {
  if (!useScope("contacts:write") || !number.startsWith("+")) return null;
  return <Link className="button" href={"/contacts/new?phone=" + encodeURIComponent(number)}><Icon name="plus" size={16} />{t("contacts.add")}</Link>;
}
