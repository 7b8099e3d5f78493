import { useState } from "react";
import { useMe, useRead } from "../../api/query";
import { spaced } from "../../parts/PhoneNumber";
import { t, useLanguage } from "../../words/words";
import { Save } from "./Save";
import { useChange, type Patch, type Settings } from "./settings";

/** Languages that are offered; any language tag that the settings have is shown too. */
const tags = ["de", "en", "es", "fr", "it", "nl", "pl", "pt", "sv", "tr"];

/** Language and time zone of the person's calls, the number that they show, and the order in which the own phones ring. */
export function CallSettings({ settings }: { settings: Settings }) {
  const shown = useLanguage(), { organization } = useMe();
  const numbers = useRead("me.numbers.list", { query: { limit: 100 } });
  const change = useChange();
  const stored: Patch = { language: settings.language, timezone: settings.timezone, outbound_number_id: settings.outbound_number_id, ring_strategy: settings.ring_strategy };
  const [draft, setDraft] = useState(stored);
  const changed = JSON.stringify(draft) !== JSON.stringify(stored);
  const nameOf = (tag: string) => new Intl.DisplayNames(shown, { type: "language" }).of(tag) ?? tag;
  const languages = [...new Set([...tags, ...(settings.language ? [settings.language] : [])])].map((tag) => [tag, nameOf(tag)] as const).sort((a, b) => a[1].localeCompare(b[1]));
  const zones = [...new Set([...Intl.supportedValuesOf("timeZone"), ...(settings.timezone ? [settings.timezone] : [])])].sort();
  const all = numbers.data?.data ?? [], now = all.find((n) => n.shown);
  const set = (members: Patch) => setDraft((before) => ({ ...before, ...members }));
  return (
    <Save title={t("profile.calls")} id="profile-calls" changed={changed} state={change} onSave={() => change.mutate(draft)}
      fields={{ language: t("profile.language"), timezone: t("profile.timezone"), outbound_number_id: t("profile.number"), ring_strategy: t("profile.ring") }}>
      <label className="field">
        <span>{t("profile.number")}</span>
        <select value={draft.outbound_number_id ?? ""} onChange={(e) => set({ outbound_number_id: e.currentTarget.value || null })}>
          <option value="">{now && !settings.outbound_number_id ? t("profile.number.default", { number: spaced(now.number) }) : t("profile.number.none")}</option>
          {all.map((n) => <option key={n.id} value={n.id}>{n.label ? `${spaced(n.number)}, ${n.label}` : spaced(n.number)}</option>)}
        </select>
      </label>
      <label className="field">
        <span>{t("profile.ring")}</span>
        <select value={draft.ring_strategy ?? "all_devices"} onChange={(e) => set({ ring_strategy: e.currentTarget.value })}>
          <option value="all_devices">{t("profile.ring.all_devices")}</option><option value="in_order">{t("profile.ring.in_order")}</option>
        </select>
      </label>
      <label className="field">
        <span>{t("profile.language")}</span>
        <select value={draft.language ?? ""} onChange={(e) => set({ language: e.currentTarget.value || null })}>
          <option value="">{t("profile.like_organisation")}</option>
          {languages.map(([tag, name]) => <option key={tag} value={tag}>{name}</option>)}
        </select>
      </label>
      <label className="field">
        <span>{t("profile.timezone")}</span>
        <select value={draft.timezone ?? ""} onChange={(e) => set({ timezone: e.currentTarget.value || null })}>
          <option value="">{t("profile.timezone.default", { zone: organization.timezone.replaceAll("_", " ") })}</option>
          {zones.map((zone) => <option key={zone} value={zone}>{zone.replaceAll("_", " ")}</option>)}
        </select>
      </label>
    </Save>
  );
}
