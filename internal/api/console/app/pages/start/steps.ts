import { usePreferences } from "../../api/preferences";
import { useMe, useRead, useScope } from "../../api/query";

export type StepName = "people" | "phone" | "number" | "flow";

/** Milliseconds after which what no event tells is asked again, while a step is open and the page is seen. */
const every = 5000;

/** What a new organisation still needs. undefined until it is known, and for people who cannot set it up. */
export function useSteps(): Record<StepName, boolean> | undefined {
  const { user } = useMe(), kept = usePreferences();
  const people = useScope("users:admin"), numbers = useScope("numbers:admin"), flows = useScope("flows:admin");
  const may = !!user && people && numbers && flows && kept !== undefined && !kept.startHidden;
  const users = useRead("users.list", { query: { limit: 2 } }, { enabled: may });
  const devices = useRead("devices.list", { query: { limit: 100 } }, { enabled: may });
  const owned = useRead("numbers.list", { query: { limit: 1 } }, { enabled: may, again: every });
  const trunks = useRead("trunks.list", { query: { limit: 1 } }, { enabled: may, again: every });
  const routed = useRead("flows.list", { query: { status: ["published"], limit: 1 } }, { enabled: may, again: every });
  if (!may || !users.data || !devices.data || !owned.data || !trunks.data || !routed.data) return undefined;
  return {
    people: users.data.data.length > 1,
    phone: devices.data.data.some((d) => d.registration.status === "registered" || d.last_seen_at !== null),
    number: owned.data.data.length + trunks.data.data.length > 0,
    flow: routed.data.data.length > 0,
  };
}
