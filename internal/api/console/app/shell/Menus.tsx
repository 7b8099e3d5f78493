import { useMe, useRead } from "../api/query";
import { PhoneBadge } from "../phone/PhoneBadge";
import { AccountMenu } from "./AccountMenu";
import { PresenceMenu } from "./PresenceMenu";

/**
 * Phone, presence and account. They are loaded after the frame, because menus are a third of the script. They appear together when the
 * presence is known: one that appeared later would move the others away from the pointer.
 */
export default function Menus() {
  const { user } = useMe();
  const agent = useRead("agents.get", { path: { id: user?.id ?? "" } }, { enabled: !!user });
  return user && agent.isPending ? null : <><PhoneBadge /><PresenceMenu /><AccountMenu /></>;
}
