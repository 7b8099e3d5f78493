import { useMutation } from "@tanstack/react-query";
import { Button, Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { request } from "../api/client";
import { queries, useMe, useRead } from "../api/query";
import { Icon } from "../parts/Icon";
import { presenceColours, presenceText } from "../parts/presence";
import { Running } from "../parts/Running";
import { t, type Key } from "../words/words";

const choices = ["available", "away", "dnd"] as const;

/** What the person does now, and what they want to be. */
export function PresenceMenu() {
  const { user } = useMe();
  const agent = useRead("agents.get", { path: { id: user?.id ?? "" } }, { enabled: !!user });
  const choose = useMutation({
    mutationFn: (status: string) => request("agents.presence.set", { path: { id: user?.id ?? "" }, body: { status } }),
    onSuccess: () => queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("agents.") }),
  });
  if (!user || !agent.data) return null;
  const { presence } = agent.data;
  return (
    <MenuTrigger>
      <Button className="pill">
        <span className={"dot " + presenceColours[presence.status]} />
        <span className="wide"><span className="hidden">{t("presence.prefix")} </span>{presenceText(presence)}</span>
        {presence.since && <span className="soft wide" aria-hidden="true"><Running since={presence.since} /></span>}
        <Icon name="down" size={16} />
      </Button>
      <Popover className="popover" placement="bottom end">
        {presence.reason === "browser_not_reachable" && <p className="why">{t("presence.unreachable")}</p>}
        <Menu aria-label={t("presence.choose")} onAction={(status) => choose.mutate(String(status))} selectionMode="single" selectedKeys={[agent.data.availability]}>
          {choices.map((status) => (
            <MenuItem key={status} id={status} textValue={t(`presence.${status}` as Key)}>
              <span className={"dot " + presenceColours[status]} />{t(`presence.${status}` as Key)}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
      {choose.error && <span role="alert" className="fault">{choose.error.message}</span>}
    </MenuTrigger>
  );
}
