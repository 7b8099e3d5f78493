import { useState } from "react";
import { changePreferences, usePreferences } from "../../api/preferences";

export interface Favourites { ids: string[]; toggle: (id: string) => void; fault: Error | undefined }

/** The colleagues that the person wants to see first. They are kept on the server. */
export function useFavourites(): Favourites {
  const ids = usePreferences()?.favourites ?? [];
  const [fault, setFault] = useState<Error>();
  const toggle = (id: string) => {
    const add = !ids.includes(id);
    setFault(undefined);
    changePreferences((before) => {
      const others = (before.favourites ?? []).filter((kept) => kept !== id);
      return { ...before, favourites: add ? [...others, id] : others };
    }).catch((cause: Error) => setFault(cause));
  };
  return { ids, toggle, fault };
}
