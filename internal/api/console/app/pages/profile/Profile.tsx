import { useMe, useRead } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Avatar } from "../../parts/Avatar";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { t, textOf } from "../../words/words";
import { CallSettings } from "./CallSettings";
import { ConsoleSettings } from "./ConsoleSettings";
import { Forwarding } from "./Forwarding";
import { Phones } from "./Phones";
import { Sounds } from "./Sounds";
import { Voicemail } from "./Voicemail";

/** What people decide about themselves: how they are reached, and how the console looks and sounds. */
export default function Profile() {
  const { user, organization } = useMe();
  const settings = useRead("me.settings.get");
  const agent = useRead("agents.get", { path: { id: user?.id ?? "" } }, { enabled: !!user });
  const facts = [user?.email, agent.data?.extension ? t("profile.extension", { extension: agent.data.extension }) : "", textOf("profile.role." + user?.role) ?? user?.role, organization.name];
  return (
    <div className="sheet profile">
      <Title text={t("profile.title")}><AsRequest /></Title>
      <section className="card me" aria-label={t("profile.me")}>
        <Avatar name={user?.name ?? ""} />
        <div><p className="name">{user?.name}</p><p className="soft">{facts.filter(Boolean).join(" · ")}</p></div>
        <a className="button" href="/account/security"><Icon name="user" size={16} />{t("profile.account")}</a>
      </section>
      {settings.error && <Problem error={settings.error} retry={() => void settings.refetch()} />}
      <div className="profile-columns">
        {settings.data && <div className="column"><Forwarding settings={settings.data} /><Voicemail settings={settings.data} /><Phones /></div>}
        <div className="column"><ConsoleSettings />{settings.data && <CallSettings settings={settings.data} />}<Sounds /></div>
      </div>
    </div>
  );
}
