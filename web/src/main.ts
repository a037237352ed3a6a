// The page: six views of a store.

import { get, setToken, type Entry, type Info } from "./api";
import { ask } from "./ask";
import { button, h, number, problem } from "./dom";
import { setVocabulary } from "./editor";
import { setPrefixes, setVocabularyTerms } from "./terms";
import { historyView, live, schema, whatIf, whyView } from "./views";
import "./style.css";

const summary = h("p", { class: "store" });

async function refresh(): Promise<void> {
  const info = await get<Info>("/info");
  setPrefixes(info.prefixes);
  const parts = [
    `version ${info.version}`,
    `${number(info.facts)} facts`,
    `${number(info.facts - info.explicit)} derived`,
    `${number(info.rules)} rules`,
    `you may ${{ read: "read", write: "write", admin: "do everything" }[info.role]}`,
  ];
  summary.replaceChildren(...parts.map((text) => h("span", {}, text)));
  document.body.dataset.role = info.role;
}

async function learn(): Promise<void> {
  const found = await get<{ classes: Entry[]; properties: Entry[] }>("/schema");
  const names = (entries: Entry[]): string[] => entries.map((one) => one.term);
  setVocabularyTerms([...names(found.classes), ...names(found.properties)]);
  setVocabulary(names(found.classes), names(found.properties));
}

function tokenDialog(): HTMLDialogElement {
  const input = h("input", { type: "password", "aria-label": "Token", autocomplete: "off" });
  const form = h("form", { method: "dialog" }, h("p", {}, "This service needs a token."), input);
  form.append(h("button", { class: "main" }, "Use it"));
  const dialog = h("dialog", { "aria-label": "Token" }, form);
  form.addEventListener("submit", () => {
    setToken(input.value);
    input.value = "";
    start();
  });
  return dialog;
}

const dialog = tokenDialog();
document.addEventListener("token-needed", () => {
  if (!dialog.open) dialog.showModal();
});

function start(): void {
  refresh()
    .then(learn)
    .catch((error) => summary.replaceChildren(problem(error)));
}

function build(): void {
  const asking = ask();
  const history = historyView((version) => {
    asking.at(version);
    select("ask");
  });
  const feed = live(() => void refresh());
  const tree = schema();
  const views: Record<string, { title: string; element: HTMLElement; load?: () => void }> = {
    ask: { title: "Ask", element: asking.element },
    why: { title: "Why", element: whyView() },
    "what-if": { title: "What if", element: whatIf(() => void refresh()) },
    history: { title: "History", element: history.element, load: history.load },
    live: { title: "Live", element: feed.element, load: feed.start },
    schema: { title: "Schema", element: tree.element, load: tree.load },
  };
  const names = Object.keys(views);
  const tabs = names.map((name, i) =>
    button(views[name].title, () => select(name), {
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": `view-${name}`,
      title: `Alt+${i + 1}`,
    }),
  );
  for (const name of names) {
    const { element } = views[name];
    element.id = `view-${name}`;
    element.setAttribute("role", "tabpanel");
    element.setAttribute("aria-labelledby", `tab-${name}`);
  }
  function select(name: string): void {
    if (location.hash !== `#${name}`) window.history.replaceState(null, "", `#${name}`);
    names.forEach((other, i) => {
      const chosen = other === name;
      views[other].element.hidden = !chosen;
      tabs[i].setAttribute("aria-selected", String(chosen));
      tabs[i].tabIndex = chosen ? 0 : -1;
    });
    if (name !== "live") feed.stop();
    views[name].load?.();
  }
  const list = h("nav", { role: "tablist", "aria-label": "Views" }, ...tabs);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (tabs.indexOf(document.activeElement as HTMLButtonElement) + step + 6) % 6;
    tabs[next].focus();
    select(names[next]);
  });
  document.addEventListener("keydown", (event) => {
    const place = Number(event.key) - 1;
    if (event.altKey && names[place]) {
      event.preventDefault();
      tabs[place].focus();
      select(names[place]);
    }
  });
  window.addEventListener("hashchange", () => {
    const name = location.hash.slice(1);
    if (views[name]) select(name);
  });
  const page = document.getElementById("page")!;
  page.replaceChildren(
    h(
      "header",
      { class: "top" },
      h("div", { class: "title" }, h("h1", {}, "Corollary"), summary),
      list,
    ),
    h("main", {}, ...names.map((name) => views[name].element)),
    dialog,
  );
  const first = location.hash.slice(1);
  select(views[first] ? first : "ask");
}

build();
start();
