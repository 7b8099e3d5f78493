import { PhoneBadge } from "../phone/PhoneBadge";
import { AccountMenu } from "./AccountMenu";
import { PresenceMenu } from "./PresenceMenu";

/** Phone, presence and account. They are loaded after the frame, because menus are a third of the script. */
export default function Menus() {
  return <><PhoneBadge /><PresenceMenu /><AccountMenu /></>;
}
