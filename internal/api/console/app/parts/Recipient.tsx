import { useEffect, useId, useState } from "react";
import { ComboBox, Input, Label, ListBox, ListBoxItem, Popover } from "react-aria-components";
import { useRead, useScope } from "../api/query";
import { t } from "../words/words";
import { spaced } from "./PhoneNumber";

/** Somebody who can be written to. */
export interface Target { name: string; number: string }

interface Choice extends Target { id: string }

const waitBeforeSearch = 150;

/** A field for a number or the name of a contact. */
export function Recipient({ label, initial, onChoose }: { label: string; initial: Target | undefined; onChoose: (target: Target | undefined) => void }) {
  const [text, setText] = useState(initial?.name ?? ""), [q, setQ] = useState(""), [chosen, setChosen] = useState<string | null>(null);
  const help = useId();
  useEffect(() => {
    const timer = setTimeout(() => setQ(/\p{L}/u.test(text) ? text.trim() : ""), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [text]);
  const contacts = useRead("contacts.list", { query: { q, limit: 8 } }, { enabled: useScope("contacts:read") && q !== "", keep: true });
  const items: Choice[] = q === "" ? [] : (contacts.data?.data ?? []).flatMap((c) => c.phones.map((p) => ({ id: c.id + p.number, name: c.name || c.company, number: p.number })));
  const words = /\p{L}/u.test(text); // the list opens before its contacts are read
  const type = (value: string) => {
    setText(value);
    setChosen(null);
    onChoose(/^\+?[\d\s()./-]{5,}$/.test(value.trim()) ? { name: value, number: value.replace(/[^+\d]/g, "") } : undefined);
  };
  return (
    <ComboBox className="recipient" inputValue={text} onInputChange={type} items={items} allowsCustomValue allowsEmptyCollection={words && chosen === null} menuTrigger="input" selectedKey={chosen}
      onSelectionChange={(key) => {
        const found = items.find((x) => x.id === key);
        if (!found) return;
        setText(`${found.name}, ${spaced(found.number)}`);
        setChosen(found.id);
        onChoose(found);
      }}>
      <Label className="label">{label}</Label>
      <Input className="input" placeholder={t("dialer.placeholder")} aria-describedby={help} />
      <span id={help} className="hidden">{t("messages.to.help")}</span>
      <Popover className="popover"><ListBox renderEmptyState={() => <p className="soft small nothing">{q === text.trim() && contacts.isSuccess && !contacts.isPlaceholderData ? t("contacts.none.found") : t("loading")}</p>}>{(x: Choice) => <ListBoxItem id={x.id} textValue={x.name}><span>{x.name}<small>{spaced(x.number)}</small></span></ListBoxItem>}</ListBox></Popover>
    </ComboBox>
  );
}
