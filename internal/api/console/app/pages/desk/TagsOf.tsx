import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../../api/client";
import { queries, useRead } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { t } from "../../words/words";

/** The tags of a call, and a field for another one. */
export function TagsOf({ callID }: { callID: string }) {
  const call = useRead("calls.get", { path: { id: callID } });
  const known = useRead("tags.list", { query: { limit: 100 } }, { staleTime: 300_000 });
  const [text, setText] = useState("");
  const refresh = () => queries.invalidateQueries({ queryKey: ["calls.get"] });
  const add = useMutation({ mutationFn: (tag: string) => request("calls.tag", { path: { id: callID }, body: { tag } }), onSuccess: () => { setText(""); return refresh(); } });
  const remove = useMutation({ mutationFn: (tag: string) => request("calls.untag", { path: { id: callID, tag } }), onSuccess: refresh });
  const error = add.error ?? remove.error;
  return (
    <form className="tags-of" onSubmit={(e) => { e.preventDefault(); if (text.trim() !== "") add.mutate(text.trim()); }}>
      <label className="label" htmlFor="new-tag">{t("tags.title")}</label>
      <div className="tags">
        {call.data?.tags.map((tag) => <span className="tag" key={tag}>{tag}<button type="button" aria-label={t("tags.remove", { tag })} onClick={() => remove.mutate(tag)}><Icon name="close" size={13} /></button></span>)}
        <input id="new-tag" className="input" list="known-tags" placeholder={t("tags.new")} value={text} onChange={(e) => setText(e.currentTarget.value)} />
        <datalist id="known-tags">{known.data?.data.map((tag) => <option key={tag.id} value={tag.name} />)}</datalist>
        <button type="submit" className="button" disabled={text.trim() === "" || add.isPending}>{t("tags.add")}</button>
      </div>
      {error && <Problem error={error} />}
    </form>
  );
}
