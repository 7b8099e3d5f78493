import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { request, upload, type Schema } from "../../api/client";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { number, t, textOf, type Key } from "../../words/words";
import { Back, refreshContacts } from "./ContactPage";

const ways = ["skip", "update", "create"] as const;
const largest = 20 << 20;

/** Milliseconds between questions how far an import has come. No event tells it. */
const askEvery = 700;

/** Imports a file of contacts. The import is part of the address, so that the page can be left while it runs. */
export function Import() {
  const [params, setParams] = useSearchParams();
  const id = params.get("import");
  return (
    <div className="sheet narrow">
      <Back to="/contacts" text={t("contacts.title")} />
      <Title text={t("contacts.import.title")} />
      {id ? <Progress id={id} onAgain={() => setParams(new URLSearchParams())} /> : <Choose onStarted={(started) => setParams(new URLSearchParams({ import: started }))} />}
    </div>
  );
}

function Choose({ onStarted }: { onStarted: (id: string) => void }) {
  const [file, setFile] = useState<File | undefined>(), [duplicates, setDuplicates] = useState<string>("skip");
  const start = useMutation({
    mutationFn: () => {
      const form = new FormData();
      form.set("duplicates", duplicates);
      form.set("file", file ?? new Blob());
      return upload("contacts.imports.create", form);
    },
    onSuccess: (i) => onStarted(i.id),
  });
  const large = !!file && file.size > largest;
  return (
    <form className="card contact-form" onSubmit={(e) => { e.preventDefault(); start.mutate(); }}>
      <p>{t("contacts.import.help")}</p>
      <label className="field"><span>{t("contacts.import.file")}</span><input type="file" accept=".csv,.vcf,.txt,text/csv,text/vcard" required onChange={(e) => setFile(e.currentTarget.files?.[0])} /></label>
      {large && <p className="fault" role="alert">{t("contacts.import.large")}</p>}
      <fieldset><legend>{t("contacts.import.known")}</legend>
        {ways.map((w) => <label className="check" key={w}><input type="radio" name="duplicates" checked={duplicates === w} onChange={() => setDuplicates(w)} />{t(`contacts.import.${w}` as Key)}</label>)}
      </fieldset>
      {start.error && <Problem error={start.error} />}
      <p className="actions"><Link className="button" href="/contacts">{t("cancel")}</Link><button type="submit" className="button primary" disabled={!file || large || start.isPending}><Icon name="upload" size={16} />{t("contacts.import")}</button></p>
    </form>
  );
}

/** How far the import has come, and what could not be read. */
function Progress({ id, onAgain }: { id: string; onAgain: () => void }) {
  const state = useQuery({
    queryKey: ["contacts.imports.get", { path: { id } }],
    queryFn: ({ signal }) => request("contacts.imports.get", { path: { id }, signal }),
    refetchInterval: (q) => (q.state.data && ended(q.state.data) ? false : askEvery),
  });
  const i = state.data, over = !!i && ended(i);
  useEffect(() => { if (over) void refreshContacts(); }, [over]);
  if (state.error && !i) return <Problem error={state.error} retry={() => void state.refetch()} />;
  if (!i) return <p className="loading" role="status">{t("loading")}</p>;
  const counts: [Key, number][] = [["contacts.import.created", i.created], ["contacts.import.updated", i.updated], ["contacts.import.skipped", i.skipped], ["contacts.import.failed", i.failed]];
  return (
    <section className="card" aria-labelledby="import">
      <header><h2 id="import">{i.filename || t("contacts.import.title")}</h2><span className={"tag" + (i.status === "failed" ? " red" : i.status === "completed" ? " green" : "")}>{t(`contacts.import.status.${i.status}` as Key)}</span></header>
      <div className="inside">
        {!over && <progress aria-label={t("contacts.import.title")} />}
        <p role="status">{t("contacts.import.done", { count: i.done })}</p>
        <dl className="figures-list">{counts.map(([name, n]) => <div key={name}><dt>{t(name)}</dt><dd>{number(n)}</dd></div>)}</dl>
        {i.error && <p className="fault" role="alert">{i.error}</p>}
        {i.unknown_columns.length > 0 && <div><h3>{t("contacts.import.columns")}</h3><p className="tags">{i.unknown_columns.map((c) => <span className="tag" key={c}>{c}</span>)}</p></div>}
        {i.errors.length > 0 && <Errors all={i.errors} failed={i.failed} />}
        {over && <p className="actions"><button type="button" className="button" onClick={onAgain}>{t("contacts.import.again")}</button><Link className="button primary" href="/contacts">{t("contacts.import.show")}</Link></p>}
      </div>
    </section>
  );
}

/** The name of a field as people know it. */
function fieldName(field: string): string {
  const first = field.split(".")[0] ?? "";
  return (first === "phones" ? t("contacts.numbers") : first === "title" ? t("contacts.job") : textOf("contacts." + first)) ?? field;
}

const ended = (i: Schema<"ContactImport">): boolean => i.status === "completed" || i.status === "failed";

function Errors({ all, failed }: { all: Schema<"ContactLineError">[]; failed: number }) {
  return (
    <div>
      <h3>{t("contacts.import.errors")}</h3>
      <div className="scroll" role="region" aria-label={t("contacts.import.errors")} tabIndex={0}>
        <table><thead><tr><th scope="col">{t("contacts.import.line")}</th><th scope="col">{t("contacts.merge.field")}</th><th scope="col">{t("contacts.import.why")}</th></tr></thead>
          <tbody>{all.map((e, i) => <tr key={i}><td>{e.line}</td><td>{fieldName(e.field)}</td><td>{e.message}</td></tr>)}</tbody></table>
      </div>
      {failed > all.length && <p className="soft small">{t("contacts.import.first", { count: all.length })}</p>}
    </div>
  );
}
