// Search over the description, and the links of the head; it uses what the server serves, and nothing else.
"use strict";
(() => {
  const box = document.getElementById("find"), list = document.getElementById("found");
  const escape = (s) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  let entries = [], chosen = 0;

  // The operations, schemas and events of the description, each with what it is found by.
  const read = (d) => {
    const all = [];
    for (const [path, item] of Object.entries(d.paths)) {
      for (const [method, o] of Object.entries(item)) {
        if (!o.operationId) continue;
        all.push({ kind: method.toUpperCase(), title: o.summary, at: path, to: "#/operations/" + o.operationId,
          words: [method, path, o.operationId, o.summary, o.description].join(" ").toLowerCase() });
      }
    }
    for (const [name, item] of Object.entries(d.webhooks || {})) {
      all.push({ kind: "EVENT", title: item.post.summary || name, at: name, to: "#/webhooks/" + item.post.operationId, words: ("webhook event " + name + " " + item.post.summary).toLowerCase() });
    }
    for (const name of Object.keys(d.components.schemas)) {
      all.push({ kind: "SCHEMA", title: name, at: "", to: "#/schemas/" + name, words: ("schema " + name).toLowerCase() });
    }
    for (const [name, e] of Object.entries(d.components.examples || {})) {
      all.push({ kind: "ERROR", title: e.summary || name, at: name, to: "/errors/" + name, words: ("error code " + name + " " + (e.summary || "")).toLowerCase() });
    }
    return all;
  };

  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? entries.filter((e) => words.every((w) => e.words.includes(w))).slice(0, 12) : [];
    chosen = Math.min(chosen, Math.max(0, hits.length - 1));
    list.innerHTML = hits.map((e, i) => `<a role="option" aria-selected="${i === chosen}" href="${escape(e.to)}"><b>${e.kind}</b> ${escape(e.title)} <code>${escape(e.at)}</code></a>`).join("") ||
      (words.length ? "<p>Nothing is called that.</p>" : "");
    list.hidden = !words.length;
  };
  const close = () => { box.value = ""; chosen = 0; show(); box.blur(); };

  box.addEventListener("input", () => { chosen = 0; show(); });
  box.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { chosen = Math.max(0, chosen + (e.key === "ArrowDown" ? 1 : -1)); show(); e.preventDefault(); }
    if (e.key === "Enter" && list.children[chosen] && list.children[chosen].href) { list.children[chosen].click(); }
    if (e.key === "Escape") close();
  });
  list.addEventListener("click", () => setTimeout(close));
  document.addEventListener("keydown", (e) => {
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName) || document.activeElement.isContentEditable;
    if (!writing && (e.key === "/" || (e.key === "k" && (e.ctrlKey || e.metaKey)))) { box.focus(); e.preventDefault(); }
  });

  fetch("/openapi.json").then((r) => r.json()).then((d) => { entries = read(d); box.disabled = false; show(); });
})();
