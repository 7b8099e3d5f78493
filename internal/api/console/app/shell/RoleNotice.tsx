import { useEffect, useRef, useState } from "react";
import { useMe } from "../api/query";
import { Icon } from "../parts/Icon";
import { t, textOf } from "../words/words";

/** Says that the role of the person has changed while the console was open: pages come and go with it. */
export function RoleNotice() {
  const role = useMe().user?.role;
  const known = useRef(role);
  const [changed, setChanged] = useState<string>();
  useEffect(() => {
    if (role !== known.current) setChanged(role);
    known.current = role;
  }, [role]);
  if (!changed) return null;
  return (
    <div className="notice-line" role="status">
      <Icon name="alert" size={16} />{t("role.changed", { role: textOf("profile.role." + changed) ?? changed })}
      <button type="button" className="button quiet" onClick={() => setChanged(undefined)}>{t("close")}</button>
    </div>
  );
}
