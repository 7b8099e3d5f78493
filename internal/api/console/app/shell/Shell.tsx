import { lazy, Suspense, useEffect, type ReactNode } from "react";
import { Link, Redirect, Route, Router, Switch, useLocation } from "wouter";
import { sentRequests } from "../api/client";
import { useMe, useScope } from "../api/query";
import { useUnread } from "../api/unread";
import { Icon, type IconName } from "../parts/Icon";
import { t, type Key } from "../words/words";
import { Age } from "./Age";
import { CallBar } from "../phone/CallBar";
import { FindButton } from "../find/FindButton";
import { Kept } from "./Kept";
import { RoleNotice } from "./RoleNotice";

const Menus = lazy(() => import("./Menus"));
const Desk = lazy(() => import("../pages/desk/Desk"));
const Calls = lazy(() => import("../pages/calls/Calls"));
const Messages = lazy(() => import("../pages/messages/Messages"));
const Voicemails = lazy(() => import("../pages/voicemail/Voicemails"));
const ContactPages = lazy(() => import("../pages/contacts/Pages"));
const Team = lazy(() => import("../pages/team/Team"));
const Profile = lazy(() => import("../pages/profile/Profile"));
const CallPage = lazy(() => import("../pages/call/CallPage"));

/** The page that people see first, below /console. */
const first = "/desk";

interface Entry { path: string; icon: IconName; name: Key; count?: number | undefined }

/** The navigation of the person, by what their scopes allow. */
export function useEntries(): Entry[] {
  const { user } = useMe();
  const calls = useScope("calls:read"), works = useScope("calls:write"), texts = useScope("sms:read"), contacts = useScope("contacts:read");
  const unread = useUnread(texts, calls);
  return [
    ...(calls && works && user ? [{ path: "/desk", icon: "home", name: "nav.desk" } as const] : []),
    ...(calls ? [{ path: "/calls", icon: "phone", name: "nav.calls" } as const] : []),
    ...(texts ? [{ path: "/messages", icon: "message", name: "nav.messages", count: unread.texts } as const] : []),
    ...(calls ? [{ path: "/voicemail", icon: "voicemail", name: "nav.voicemail", count: unread.voicemail } as const] : []),
    ...(contacts ? [{ path: "/contacts", icon: "book", name: "nav.contacts" } as const] : []),
    ...(calls ? [{ path: "/team", icon: "users", name: "nav.team" } as const] : []),
  ];
}

/** Returns whether a page is in the navigation of the person. Pages link to another one only if it is. */
export function useHasPage(): (path: string) => boolean {
  const entries = useEntries();
  return (path) => entries.some((e) => e.path === path);
}

/** The frame of all pages: navigation, phone, presence and account. */
export function Shell() {
  return <Router base="/console"><Frame /></Router>;
}

function Frame() {
  const entries = useEntries();
  const [at] = useLocation();
  useEffect(() => sentRequests.set([]), [at]);
  return (
    <div className="frame">
      <a className="skip" href="#page">{t("nav.skip")}</a>
      <header className="top">
        <Age />
        <FindButton />
        <span className="space" />
        <Suspense fallback={null}><Menus /></Suspense>
        <Kept />
      </header>
      <nav className="side" aria-label={t("nav.label")}>
        <Link className="brand" href={entries[0]?.path ?? "/"}><Icon name="activity" size={20} />soniq</Link>
        <p className="group" id="nav-work">{t("nav.work")}</p>
        <ul aria-labelledby="nav-work">{entries.map((e) => <li key={e.path}><Entry {...e} current={at === e.path || at.startsWith(e.path + "/")} /></li>)}</ul>
      </nav>
      <main id="page" tabIndex={-1}>
        <RoleNotice />
        <Suspense fallback={<p className="loading" role="status">{t("loading")}</p>}>
          <Pages entries={entries} />
        </Suspense>
      </main>
      <CallBar />
    </div>
  );
}

function Entry({ path, icon, name, count = 0, current }: Entry & { current: boolean }) {
  return (
    <Link href={path} aria-current={current ? "page" : undefined}>
      <Icon name={icon} /><span>{t(name)}</span>{count > 0 && <span className="count">{count}<span className="hidden"> {t("nav.new")}</span></span>}
    </Link>
  );
}

function Pages({ entries }: { entries: Entry[] }) {
  const { user } = useMe();
  const has = (path: string) => entries.some((e) => e.path === path);
  const home = has(first) ? first : entries[0]?.path;
  return (
    <Switch>
      {has("/desk") && <Route path="/desk"><Desk /></Route>}
      {has("/calls") && <Route path="/calls"><Calls /></Route>}
      {has("/messages") && <Route path="/messages/:id?">{({ id }) => <Messages id={id} />}</Route>}
      {has("/voicemail") && <Route path="/voicemail/:id?">{({ id }) => <Voicemails id={id} />}</Route>}
      {has("/contacts") && <Route path="/contacts/*?"><ContactPages /></Route>}
      {has("/calls") && <Route path="/calls/:id/:tab?">{({ id, tab }) => <CallPage id={id} tab={tab ?? "conversation"} />}</Route>}
      {has("/team") && <Route path="/team"><Team /></Route>}
      {user && <Route path="/profile"><Profile /></Route>}
      <Route path="/">{home ? <Redirect to={home} replace /> : <Nothing title={t("page.nothing")}>{t("page.nothing.help")}</Nothing>}</Route>
      <Route><Nothing title={t("page.absent")}>{t("page.absent.help")}</Nothing></Route>
    </Switch>
  );
}

function Nothing({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => { document.title = title + " · soniq"; }, [title]);
  return <div className="sheet"><h1>{title}</h1><p>{children}</p></div>;
}
