import { useEffect, useRef, useState } from "react";
import { Autocomplete, Header, Input, Label, ListBox, ListBoxItem, ListBoxSection, SearchField, Text } from "react-aria-components";
import { useLocation } from "wouter";
import { Icon } from "../parts/Icon";
import { Problem } from "../parts/Problem";
import { t, type Key } from "../words/words";
import { useCommands } from "./commands";
import { useRecords, type Section } from "./found";

/** Finds people, contacts, queues, numbers, calls, pages and actions. Keys alone are enough: arrows choose, Enter opens, Escape closes. */
export default function Find({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(""), [fault, setFault] = useState<Error>();
  const [, navigate] = useLocation();
  useEffect(() => { if (!dialog.current?.open) dialog.current?.showModal(); }, []);
  const go = (address: string) => navigate(address);
  const commands = useCommands(text, go);
  const { sections, busy, failed } = useRecords(text, go);
  const shown = [...commands, ...sections].filter((s) => s.found.length > 0);
  const count = shown.reduce((n, s) => n + s.found.length, 0);
  const open = (key: string) => {
    const found = shown.flatMap((s) => s.found.map((f) => ({ key: s.id + " " + f.id, f }))).find((x) => x.key === key)?.f;
    if (!found) return;
    void Promise.resolve(found.act()).then(() => dialog.current?.close(), (cause: Error) => setFault(cause));
  };
  return (
    <dialog ref={dialog} className="dialog find-dialog" aria-label={t("find.title")} onClose={onClose} onClick={(e) => { if (e.target === dialog.current) dialog.current.close(); }}>
      <Autocomplete inputValue={text} onInputChange={setText}>
        <SearchField className="find-field" autoFocus onKeyDown={(e) => { if (e.key === "Escape") dialog.current?.close(); }}>
          <Icon name="search" />
          <Label className="hidden">{t("find.title")}</Label>
          <Input className="find-input" placeholder={t("find.placeholder")} maxLength={100} />
          <kbd aria-hidden="true">Esc</kbd>
        </SearchField>
        <ListBox className="find-list" aria-label={t("find.results")} selectionMode="none" onAction={(key) => open(String(key))}
          renderEmptyState={() => <p className="empty">{busy ? t("loading") : t("find.nothing", { text })}</p>}>
          {shown.map((s) => <Part key={s.id} section={s} />)}
        </ListBox>
      </Autocomplete>
      {(fault ?? failed) && <Problem error={(fault ?? failed) as Error} />}
      <p className="hidden" role="status">{busy ? "" : t("find.count", { count })}</p>
    </dialog>
  );
}

function Part({ section }: { section: Section }) {
  return (
    <ListBoxSection id={section.id}>
      <Header>{t(`find.${section.id}` as Key)}</Header>
      {section.found.map((f) => (
        <ListBoxItem key={f.id} id={section.id + " " + f.id} textValue={f.name}>
          <Icon name={f.icon} size={16} /><Text slot="label" className="name">{f.name}</Text>{f.detail && <Text slot="description" className="soft small">{f.detail}</Text>}
        </ListBoxItem>
      ))}
    </ListBoxSection>
  );
}
