import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { useLocation } from "wouter";
import { Icon } from "../parts/Icon";
import { Problem } from "../parts/Problem";
import { t, type Key } from "../words/words";
import { useCommands } from "./commands";
import { useRecords, type Found, type Section } from "./found";

/** Finds people, contacts, queues, numbers, calls, pages and actions. Keys alone are enough: arrows choose, Enter opens, Escape closes. */
export default function Find({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null), list = useId();
  const [text, setText] = useState(""), [chosen, choose] = useState(""), [fault, setFault] = useState<Error>();
  const [, go] = useLocation();
  useEffect(() => { if (!dialog.current?.open) dialog.current?.showModal(); }, []);
  const commands = useCommands(text, go);
  const { sections, busy, failed } = useRecords(text, go);
  const shown = [...commands, ...sections].filter((s) => s.found.length > 0);
  const all = shown.flatMap((s) => s.found.map((found) => ({ id: idOf(list, s, found), found })));
  // What was chosen stays chosen when late answers come in above it.
  const at = Math.max(0, all.findIndex((x) => x.id === chosen)), current = all[at];
  const open = (found: Found) => void Promise.resolve(found.act()).then(() => dialog.current?.close(), (cause: Error) => setFault(cause));
  const pressed = (e: KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) choose(all[(at + step + all.length) % all.length]?.id ?? "");
    else if (e.key === "Enter" && current && !e.nativeEvent.isComposing) open(current.found);
    else return;
    e.preventDefault();
  };
  return (
    <dialog ref={dialog} className="dialog find-dialog" aria-label={t("find.title")} onClose={onClose} onClick={(e) => { if (e.target === dialog.current) dialog.current.close(); }}>
      <label className="find-field">
        <Icon name="search" /><span className="hidden">{t("find.title")}</span>
        <input className="find-input" role="combobox" autoFocus autoComplete="off" spellCheck={false} maxLength={100} aria-expanded={all.length > 0} aria-controls={list} aria-autocomplete="list"
          aria-activedescendant={current?.id} placeholder={t("find.placeholder")} value={text} onKeyDown={pressed} onChange={(e) => { setText(e.currentTarget.value); choose(""); }} />
        <kbd aria-hidden="true">Esc</kbd>
      </label>
      <div id={list} className="find-list" role="listbox" aria-label={t("find.results")} hidden={all.length === 0}>
        {shown.map((s) => <Part key={s.id} list={list} section={s} current={current?.id} onPoint={choose} onOpen={open} />)}
      </div>
      {all.length === 0 && <p className="empty">{busy ? t("loading") : t("find.nothing", { text })}</p>}
      {(fault ?? failed) && <Problem error={(fault ?? failed) as Error} />}
      <p className="hidden" role="status">{busy ? "" : t("find.count", { count: all.length })}</p>
    </dialog>
  );
}

const idOf = (list: string, section: Section, found: Found): string => `${list}-${section.id}-${found.id}`;

interface Parts { list: string; section: Section; current: string | undefined; onPoint: (id: string) => void; onOpen: (found: Found) => void }

/** What was found of a kind. The focus stays in the field; the mouse chooses and opens too. */
function Part({ list, section, current, onPoint, onOpen }: Parts) {
  const title = `${list}-${section.id}`;
  return (
    <div role="group" aria-labelledby={title}>
      <p className="find-kind" id={title}>{t(`find.${section.id}` as Key)}</p>
      {section.found.map((found) => {
        const id = idOf(list, section, found), chosen = id === current;
        return (
          <div key={id} id={id} role="option" aria-selected={chosen}
            ref={chosen ? intoView : undefined} onMouseMove={() => { if (!chosen) onPoint(id); }} onClick={() => onOpen(found)}>
            <Icon name={found.icon} size={16} /><span className="name">{found.name}</span>{found.detail && <span className="soft small">{found.detail}</span>}
          </div>
        );
      })}
    </div>
  );
}

const intoView = (option: HTMLElement | null): void => option?.scrollIntoView({ block: "nearest" });
