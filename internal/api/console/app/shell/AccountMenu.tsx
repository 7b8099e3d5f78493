import { Button, Header, Menu, MenuItem, MenuSection, MenuTrigger, Popover, Separator } from "react-aria-components";
import { useLocation } from "wouter";
import { useMe } from "../api/query";
import { useStore } from "../live/store";
import { Avatar } from "../parts/Avatar";
import { Icon } from "../parts/Icon";
import { languages, t, useLanguage, type Key } from "../words/words";
import { setLanguage } from "./language";
import { setTheme, theme, themes, type Theme } from "./theme";

/** Organisation, language, theme and the way to the account page. */
export function AccountMenu() {
  const { user, organization } = useMe();
  const language = useLanguage(), chosen = useStore(theme);
  const [, go] = useLocation();
  const name = user?.name || user?.email || organization.name;
  return (
    <MenuTrigger>
      <Button className="pill account">
        <Avatar name={name} small /><span className="wide"><span className="hidden">{name}, </span>{organization.name}</span><Icon name="down" size={16} />
      </Button>
      <Popover className="popover" placement="bottom end">
        <Menu aria-label={t("account.menu")} onAction={(key) => (key === "profile" ? go("/profile") : act(key))}>
          {user && <MenuItem id="profile" textValue={t("profile.title")}>{t("profile.title")}</MenuItem>}
          <MenuItem id="account" textValue={t("account.page")}><span>{t("account.page")}<small>{name}</small></span></MenuItem>
          <MenuItem id="reference" textValue={t("account.reference")}>{t("account.reference")}</MenuItem>
          <Separator />
          <MenuSection selectionMode="single" selectedKeys={[chosen]} disallowEmptySelection onSelectionChange={(keys) => setTheme([...keys][0] as Theme)}>
            <Header>{t("theme")}</Header>
            {themes.map((id) => <MenuItem key={id} id={id}>{t(`theme.${id}` as Key)}</MenuItem>)}
          </MenuSection>
          <Separator />
          <MenuSection selectionMode="single" selectedKeys={[language]} disallowEmptySelection onSelectionChange={(keys) => setLanguage(String([...keys][0]))}>
            <Header>{t("language")}</Header>
            {Object.entries(languages).map(([id, native]) => <MenuItem key={id} id={id}>{native}</MenuItem>)}
          </MenuSection>
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

function act(key: string | number): void {
  if (key === "account") location.assign("/account");
  if (key === "reference") window.open("/docs", "_blank", "noreferrer");
}
