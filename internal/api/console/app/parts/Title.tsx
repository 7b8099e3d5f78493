import { useEffect, type ReactNode } from "react";

/** The heading of a page, which also names the tab of the browser. */
export function Title({ text, children }: { text: string; children?: ReactNode }) {
  useEffect(() => { document.title = text + " · soniq"; }, [text]);
  return <div className="title"><h1>{text}</h1>{children}</div>;
}
