import { useMutation } from "@tanstack/react-query";
import { Button, Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { request, type Agent } from "../../api/client";
import { queries } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { presenceColours, presenceName } from "../../parts/presence";
import { t } from "../../words/words";

const choices = ["available", "away", "dnd", "offline"] as const;

/** Chooses the presence of a colleague. In a call it counts when the call has ended. */
export function OtherPresence({ agent }: { agent: Agent }) {
  const choose = useMutation({
    mutationFn: (status: string) => request("agents.presence.set", { path: { id: agent.id }, body: { status } }),
    onSuccess: () => queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("agents.") }),
  });
  return (
    <MenuTrigger>
      <Button className="button quiet" aria-label={t("team.choose", { name: agent.name })} isDisabled={choose.isPending}>{t("team.set")}<Icon name="down" size={15} /></Button>
      <Popover className="popover" placement="bottom end">
        <Menu aria-label={t("team.choose", { name: agent.name })} onAction={(status) => choose.mutate(String(status))} selectionMode="single" selectedKeys={[agent.availability]}>
          {choices.map((status) => <MenuItem key={status} id={status} textValue={presenceName(status)}><span className={"dot " + presenceColours[status]} />{presenceName(status)}</MenuItem>)}
        </Menu>
      </Popover>
      {choose.error && <span role="alert" className="fault small">{choose.error.message}</span>}
    </MenuTrigger>
  );
}
