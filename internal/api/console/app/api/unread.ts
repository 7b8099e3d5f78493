import { useRead } from "./query";

/** How many conversations have unread messages, and how many voicemail messages are new. Events refresh it. */
export function useUnread(texts: boolean, calls: boolean): { texts: number; voicemail: number } {
  const unread = useRead("sms.conversations.list", { query: { unread: "true", limit: 1, include_total: true } }, { enabled: texts });
  const fresh = useRead("voicemail.list", { query: { status: ["new"], limit: 1, include_total: true } }, { enabled: calls });
  return { texts: unread.data?.total ?? 0, voicemail: fresh.data?.total ?? 0 };
}
