import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { request, type Agent, type Input, type Me, type Result } from "../../api/client";

/** What the list of colleagues is limited to; "" for no limit. */
export interface Limits { q: string; status: string; queue: string }

/** Reads the colleagues, page by page. Events of presence refresh them. */
export function useTeam({ q, status, queue }: Limits) {
  const query = { limit: 50, ...(q ? { q } : {}), ...(status ? { status: [status] } : {}), ...(queue ? { queue_id: queue } : {}) };
  return useInfiniteQuery({
    queryKey: ["agents.list", "pages", query],
    queryFn: ({ pageParam, signal }) => request("agents.list", { query: { ...query, ...(pageParam ? { cursor: pageParam } : {}) }, signal } as Input<"agents.list">),
    initialPageParam: "",
    getNextPageParam: (last: Result<"agents.list">) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  });
}

/**
 * Reports whether a person may choose the presence of a colleague. Administrators may for everybody. Supervisors may for members of their
 * own queues, or for everybody if they are in no queue. The server decides; this only hides what it would refuse.
 */
export function mayChoose(me: Me, own: Agent | undefined, other: Agent): boolean {
  if (other.id === me.user?.id) return false;
  if (me.scopes.includes("users:admin")) return true;
  if (!me.scopes.includes("queues:admin") || !own) return false;
  return own.queues.length === 0 || own.queues.some((k) => other.queues.some((theirs) => theirs.id === k.id));
}

/** Reports whether a person sees all calls: supervisors and agents see those of their queues. */
export const seesAllCalls = (me: Me): boolean => ["owner", "admin", "viewer"].includes(me.user?.role ?? "");
