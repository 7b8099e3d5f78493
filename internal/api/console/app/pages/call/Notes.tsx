import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { request, type Call } from "../../api/client";
import { queries, useNames, useRead, useScope } from "../../api/query";
import { Problem } from "../../parts/Problem";
import { moment, t } from "../../words/words";

/** The notes of a call, and a field for another one. */
export function Notes({ call }: { call: Pick<Call, "id"> }) {
  const notes = useRead("calls.notes.list", { path: { id: call.id } });
  const mayWrite = useScope("calls:write");
  const nameOf = useNames();
  const all = notes.data?.data ?? [];
  return (
    <section className="card" aria-labelledby="notes">
      <header><h2 id="notes">{t("notes.title")}</h2></header>
      <div className="inside">
        {notes.error && <Problem error={notes.error} />}
        {notes.isSuccess && all.length === 0 && <p className="soft">{t("notes.none")}</p>}
        {all.map((n) => <article key={n.id} className="note"><p className="small"><strong>{nameOf(n.author.id) ?? n.author.name}</strong> <span className="soft">{moment(n.created_at)}</span></p><p>{n.body}</p></article>)}
        {mayWrite && <NewNote callID={call.id} />}
      </div>
    </section>
  );
}

/** A field for a note. It is kept until the server has it. */
export function NewNote({ callID }: { callID: string }) {
  const [body, setBody] = useState("");
  const add = useMutation({
    mutationFn: () => request("calls.note", { path: { id: callID }, body: { body: body.trim() } }),
    onSuccess: () => {
      setBody("");
      return queries.invalidateQueries({ queryKey: ["calls.notes.list"] });
    },
  });
  return (
    <form className="new-note" onSubmit={(e) => { e.preventDefault(); if (body.trim() !== "") add.mutate(); }}>
      <label className="field"><span>{t("notes.new")}</span><textarea value={body} onChange={(e) => setBody(e.currentTarget.value)} /></label>
      {add.error && <Problem error={add.error} />}
      <button type="submit" className="button" disabled={body.trim() === "" || add.isPending}>{t("notes.add")}</button>
    </form>
  );
}
