import { useStore } from "../../live/store";
import { setLanguage } from "../../shell/language";
import { setTheme, theme, themes } from "../../shell/theme";
import { languages, t, useLanguage, type Key } from "../../words/words";

/** How the console looks, in every browser of the person. A choice counts at once. */
export function ConsoleSettings() {
  const language = useLanguage(), chosen = useStore(theme);
  return (
    <section className="card" aria-labelledby="console-settings">
      <header><h2 id="console-settings">{t("profile.console")}</h2></header>
      <div className="inside">
        <label className="field">
          <span>{t("profile.console.language")}</span>
          <select value={language} onChange={(e) => setLanguage(e.currentTarget.value)}>{Object.entries(languages).map(([id, native]) => <option key={id} value={id}>{native}</option>)}</select>
        </label>
        <fieldset className="choices">
          <legend className="label">{t("theme")}</legend>
          {themes.map((id) => <label className="check" key={id}><input type="radio" name="theme" checked={chosen === id} onChange={() => setTheme(id)} /><span>{t(`theme.${id}` as Key)}</span></label>)}
        </fieldset>
        <p className="soft small">{t("profile.console.kept")}</p>
      </div>
    </section>
  );
}
