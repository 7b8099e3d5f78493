import { useEffect, useRef, useState } from "react";
import { Icon } from "./Icon";

const waitBeforeSearch = 250;

/** A field whose text is passed on a moment after the last key. */
export function SearchField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [typed, type] = useState(value), pass = useRef(onChange);
  pass.current = onChange;
  useEffect(() => type(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => pass.current(typed), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [typed, value]);
  return <label className="search-field"><Icon name="search" size={16} /><span className="hidden">{label}</span><input type="search" className="input" placeholder={label} value={typed} onChange={(e) => type(e.currentTarget.value)} /></label>;
}
