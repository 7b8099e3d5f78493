import { keepPreviousData, QueryClient, useInfiniteQuery, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { asName } from "../parts/PhoneNumber";
import { request, SoniqError, type Call, type Input, type Me, type Operation, type Result } from "./client";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // The client has retried already.
      retry: false,
      refetchOnWindowFocus: true,
    },
  },
});

/** again: milliseconds after which an empty list is read again while the page is seen, for what no event tells. */
type Options = { enabled?: boolean; keep?: boolean; staleTime?: number; again?: number };

/** Reads an operation. The answer is kept by operation and input; events of the stream refresh it. */
export function useRead<O extends Operation>(operation: O, input?: Input<O>, options: Options = {}): UseQueryResult<Result<O>, Error> {
  return useQuery<Result<O>, Error>({
    queryKey: [operation, input ?? {}],
    queryFn: ({ signal }) => request(operation, { ...input, signal } as Input<O>),
    enabled: options.enabled ?? true,
    ...(options.staleTime === undefined ? {} : { staleTime: options.staleTime }),
    ...(options.again === undefined ? {} : { refetchInterval: (q: { state: { data?: unknown } }) => (isEmpty(q.state.data) ? (options.again ?? false) : false) }),
    ...(options.keep ? { placeholderData: keepPreviousData as never } : {}),
  });
}

const isEmpty = (page: unknown): boolean => (page as { data?: unknown[] } | undefined)?.data?.length === 0;

/** Like useRead, for records that may not exist: null where the server answers 404. */
export function useReadIfPresent<O extends Operation>(operation: O, input: Input<O>, enabled = true): UseQueryResult<Result<O> | null, Error> {
  return useQuery<Result<O> | null, Error>({
    queryKey: [operation, input],
    queryFn: async ({ signal }) => {
      try {
        return await request(operation, { ...input, signal } as Input<O>);
      } catch (e) {
        if (e instanceof SoniqError && e.status === 404) return null;
        throw e;
      }
    },
    enabled,
  });
}

type CallQuery = NonNullable<Input<"calls.list">["query"]>;

/** Reads the list of calls, page by page. */
export function useCalls(query: CallQuery) {
  return useInfiniteQuery({
    queryKey: ["calls.list", query],
    queryFn: ({ pageParam, signal }) => request("calls.list", { query: { ...query, limit: 50, ...(pageParam ? { cursor: pageParam } : {}) }, signal }),
    initialPageParam: "",
    getNextPageParam: (last: Result<"calls.list">) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  });
}

/** The person who is signed in. */
export function useMe(): Me {
  const { data } = useRead("me.get", undefined, { staleTime: Number.POSITIVE_INFINITY });
  if (!data) throw new Error("the shell shows pages after the person is known");
  return data;
}

/** Whether the person holds a scope. */
export function useScope(...any: string[]): boolean {
  const { scopes } = useMe();
  return any.some((scope) => scopes.includes(scope));
}

/** Names of people and queues by id. */
export function useNames(): (id: string | null | undefined) => string | undefined {
  const agents = useRead("agents.list", { query: { limit: 100 } }, { enabled: useScope("queues:read"), staleTime: 300_000 });
  const queues = useRead("queues.list", { query: { limit: 100 } }, { enabled: useScope("queues:read"), staleTime: 300_000 });
  return (id) => {
    if (!id) return undefined;
    return agents.data?.data.find((a) => a.id === id)?.name ?? queues.data?.data.find((q) => q.id === id)?.name;
  };
}

/** Returns the party of a call that is not of the organisation. */
export function otherParty(call: Pick<Call, "direction" | "contact" | "from_name" | "from_number" | "to_number">): { name: string | undefined; number: string } {
  const number = call.direction === "outbound" ? call.to_number : call.from_number;
  return { name: call.contact?.name || (call.direction === "outbound" ? undefined : asName(call.from_name)), number };
}
