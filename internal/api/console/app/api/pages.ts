import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import type { Item, ListOperation } from "../../../../../sdk/typescript/src/types.js";
import { request, type Input } from "./client";

interface Page<T> { data: T[]; next_cursor: string | null }

/** Reads a list page by page. rows has what was read so far. */
export function usePages<O extends ListOperation>(operation: O, input: { path?: Record<string, string>; query?: Record<string, unknown> }, options: { enabled?: boolean; size?: number } = {}) {
  const pages = useInfiniteQuery({
    queryKey: [operation, input],
    queryFn: async ({ pageParam, signal }) => {
      const query = { limit: options.size ?? 50, ...input.query, ...(pageParam ? { cursor: pageParam } : {}) };
      return (await request(operation, { ...input, query, signal } as unknown as Input<O>)) as unknown as Page<Item<O>>;
    },
    initialPageParam: "",
    getNextPageParam: (last: Page<Item<O>>) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    enabled: options.enabled ?? true,
  });
  return { ...pages, rows: pages.data?.pages.flatMap((page) => page.data) ?? [] };
}
