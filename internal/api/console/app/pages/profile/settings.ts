import { useMutation } from "@tanstack/react-query";
import { request, type Input, type Schema } from "../../api/client";
import { queries } from "../../api/query";

export type Settings = Schema<"UserSettings">;
export type Patch = NonNullable<Input<"me.settings.update">["body"]>;

/** Changes the own settings. What is shown is what the server answers. */
export function useChange() {
  return useMutation({
    mutationFn: (body: Patch) => request("me.settings.update", { body }),
    onSuccess: (settings) => {
      queries.setQueryData(["me.settings.get", {}], settings);
      return queries.invalidateQueries({ queryKey: ["me.numbers.list"] });
    },
  });
}
