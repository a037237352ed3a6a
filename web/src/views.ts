// The views beside Ask: Why, What if, History, Live and Schema.

import {
  address,
  follow,
  get,
  post,
  request,
  type Change,
  type Commit,
  type Entry,
  type Inconsistency,
  type Outcome,
  type Rules,
} from "./api";
import { button, h, number, problem, show } from "./dom";
import { bars, type Bar } from "./drawing";
import { changeList, contradictions, outcome, proof, term, tripleTable } from "./parts";
import { shorten } from "./terms";

function field(label: string, rows: number, hint: string): HTMLTextAreaElement {
  return h("textarea", { "aria-label": label, placeholder: hint, rows, spellcheck: "false" });
}

export function whyView(): HTMLElement {
  const input = h("input", {
    type: "text",
    "aria-label": "Fact",
    placeholder: "[:ann, a, :Person]",
    spellcheck: "false",
  });
  const place = h("div", { "aria-live": "polite" });
  const form = h("form", { class: "line" }, input, h("button", { class: "main" }, "Why?"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void show(place, () => proof(input.value));
  });
  const check = (): Promise<void> =>
    show(place, async () => {
      const found = await get<{ inconsistencies: Inconsistency[]; rules: Rules }>("/check");
      if (!found.inconsistencies.length) return h("p", {}, "There are no contradictions.");
      return contradictions(found.inconsistencies, found.rules);
    });
  return h(
    "section",
    {},
    h("p", {}, "A smallest proof of a fact: each step is the instance of a rule."),
    form,
    h("p", { class: "actions" }, button("Find contradictions", check)),
    place,
  );
}

export function whatIf(committed: () => void): HTMLElement {
  const fields = {
    insert: field("Facts to insert", 4, ":cat a :Kitten ."),
    delete: field("Facts to delete", 3, ":dog a :Puppy ."),
    add_rules: field("Rules to add", 3, "[?x, a, :Pet] :- [?x, a, :Cat] ."),
    remove_rules: field("Rules to remove", 2, "[?x, a, :Pet] :- [?x, a, :Dog] ."),
  };
  const place = h("div", { "aria-live": "polite" });
  const changes = (): Record<string, string> => {
    const texts = Object.entries(fields).map(([name, one]) => [name, one.value]);
    return Object.fromEntries(texts.filter(([, text]) => text.trim()));
  };
  const clear = (): void => {
    for (const one of Object.values(fields)) one.value = "";
    place.replaceChildren();
  };
  const commit = (): Promise<void> =>
    show(place, async () => {
      const found = await post<Outcome>("/transaction", changes());
      committed();
      return [h("p", { class: "done" }, `Committed as version ${found.version}.`), ...outcome(found)];
    });
  const preview = (): Promise<void> =>
    show(place, async () => {
      const found = await post<Outcome>("/preview", changes());
      const buttons = [button("Commit", commit, { class: "main" }), button("Drop", clear)];
      return [h("p", { class: "actions" }, ...buttons), ...outcome(found)];
    });
  return h(
    "section",
    { class: "what-if" },
    h("p", {}, "Facts in Turtle, rules in the rule language. Nothing changes until you commit."),
    ...Object.values(fields).map((one) => h("label", {}, one.getAttribute("aria-label"), one)),
    h("p", { class: "actions" }, button("What would follow?", preview, { class: "main" })),
    place,
  );
}

export function historyView(queryAt: (version: number) => void): {
  element: HTMLElement;
  load(): void;
} {
  const place = h("div");
  const details = h("div", { "aria-live": "polite" });
  const open = (commit: Commit): void => {
    void show(details, async () => {
      const values = { from: commit.version - 1, to: commit.version };
      const found =
        commit.version > 0
          ? await get<{ changes: Change[]; complete: boolean }>("/diff", values)
          : { changes: [], complete: true };
      const actions = [button("Query this version", () => queryAt(commit.version))];
      if (commit.kind === "update") actions.push(button("Undo", () => undo(commit.version)));
      return [
        h("h3", {}, `Version ${commit.version}: ${commit.message || commit.kind}`),
        h("p", { class: "actions" }, ...actions),
        changeList(found.changes, found.complete),
      ];
    });
  };
  const undo = (version: number): Promise<void> =>
    show(details, async () => {
      const response = await request(address("/revert", { version }), { method: "POST" });
      const found = (await response.json()) as Outcome;
      load();
      return [h("p", { class: "done" }, `Undone by version ${found.version}.`), ...outcome(found)];
    });
  const load = (): void => {
    void show(place, async () => {
      const { commits } = await get<{ commits: Commit[] }>("/log", { limit: 100 });
      const line: Bar[] = [...commits].reverse().map((one) => ({
        label: `version ${one.version}: +${one.inserted} −${one.deleted}`,
        up: one.inserted,
        down: one.deleted,
        act: () => open(one),
      }));
      const rows = commits.map((one) =>
        h(
          "tr",
          {},
          h("td", {}, button(`${one.version}`, () => open(one), { class: "term" })),
          h("td", {}, h("time", { datetime: one.time }, new Date(one.time).toLocaleString())),
          h("td", {}, one.author),
          h("td", { class: "up" }, `+${number(one.inserted)}`),
          h("td", { class: "down" }, `−${number(one.deleted)}`),
          h("td", {}, one.message || one.kind),
        ),
      );
      const table = h("table", {}, h("tbody", {}, ...rows));
      return [bars(line, "Changes by version"), h("div", { class: "wide" }, table)];
    });
  };
  return { element: h("section", {}, place, details), load };
}

export function live(): { element: HTMLElement; start(): void; stop(): void } {
  const state = h("p", { role: "status" }, "not connected");
  const pattern = h("input", {
    type: "text",
    "aria-label": "Pattern",
    placeholder: "every change, or a pattern: [?x, a, ?c]",
  });
  const sizes = h("div");
  const times = h("div");
  const list = h("ol", { class: "commits", reversed: true });
  const seen: Commit[] = [];
  let stopper: AbortController | null = null;
  const receive = (kind: string, data: unknown): void => {
    if (kind !== "commit") return;
    const commit = data as Commit;
    seen.push(commit);
    if (seen.length > 60) seen.shift();
    const count = (kinds: string[]): number =>
      (commit.changes ?? []).filter((one) => kinds.includes(one.change)).length;
    const title = `Version ${commit.version} by ${commit.author}: ${commit.message || commit.kind}`;
    list.prepend(
      h(
        "li",
        {},
        h(
          "details",
          { open: (commit.changes ?? []).length < 10 },
          h("summary", {}, title, ` (+${count(["inserted"])} −${count(["deleted"])})`),
          changeList(commit.changes ?? [], commit.complete),
        ),
      ),
    );
    while (list.children.length > 60) list.lastChild?.remove();
    sizes.replaceChildren(
      bars(
        seen.map((one) => ({
          label: `version ${one.version}: +${one.inserted} −${one.deleted}`,
          up: one.inserted,
          down: one.deleted,
        })),
        "Changes by commit",
      ),
    );
    times.replaceChildren(
      bars(
        seen.map((one) => ({
          label: `version ${one.version}: ${(one.seconds * 1000).toFixed(1)} ms`,
          up: one.seconds * 1000,
          down: 0,
        })),
        "Update time by commit, in milliseconds",
      ),
    );
  };
  const stop = (): void => {
    stopper?.abort();
    stopper = null;
    state.textContent = "not connected";
  };
  const start = (): void => {
    stop();
    stopper = new AbortController();
    const values = { pattern: pattern.value };
    const say = (text: string): void => {
      state.textContent = text;
    };
    follow("/changes", values, receive, say, stopper.signal).catch((error) =>
      state.replaceChildren(problem(error)),
    );
  };
  pattern.addEventListener("change", start);
  const element = h(
    "section",
    {},
    h("p", { class: "line" }, pattern),
    state,
    h("h3", {}, "Changes"),
    sizes,
    h("h3", {}, "Update time"),
    times,
    list,
  );
  return { element, start, stop };
}

export function schema(): { element: HTMLElement; load(): void } {
  const place = h("div", { class: "trees" });
  const details = h("div", { "aria-live": "polite" });

  function tree(title: string, entries: Entry[], pattern: (term: string) => string): HTMLElement {
    const byTerm = new Map(entries.map((one) => [one.term, one]));
    const below = new Map<string, { entry: Entry; inferred: boolean }[]>();
    for (const entry of entries) {
      for (const { parent, inferred } of entry.positions) {
        if (!byTerm.has(parent)) continue;
        below.set(parent, [...(below.get(parent) ?? []), { entry, inferred }]);
      }
    }
    const item = (entry: Entry, inferred: boolean, depth: number): HTMLElement => {
      const names = [entry.term, ...entry.equivalent].map(shorten).join(" = ");
      const count = number(entry.explicit + entry.derived);
      const label = h(
        "span",
        {},
        button(names, () => about(entry, pattern(entry.term)), { class: "term" }),
        h("span", { class: "count", title: `${number(entry.derived)} derived` }, ` ${count}`),
        inferred ? h("span", { class: "badge derived" }, "inferred") : null,
      );
      const children = below.get(entry.term) ?? [];
      if (!children.length || depth > 30) return h("li", {}, label);
      const summary = h("summary", {}, label);
      const list = h("ul");
      const fold = h("details", {}, summary, list);
      const fillList = (): void => {
        if (fold.open && !list.children.length) {
          list.append(...children.map((one) => item(one.entry, one.inferred, depth + 1)));
        }
      };
      fold.addEventListener("toggle", fillList);
      fold.open = depth < 2;
      fillList();
      return h("li", {}, fold);
    };
    const roots = entries.filter((one) => !one.positions.length);
    return h(
      "div",
      {},
      h("h3", {}, `${title} (${entries.length})`),
      h("ul", { class: "tree" }, ...roots.map((one) => item(one, false, 0))),
    );
  }
  function about(entry: Entry, pattern: string): void {
    void show(details, async () => {
      const iri = entry.term.slice(1, -1);
      const [{ rules }, axioms, members] = await Promise.all([
        get<{ rules: { name: string | null; text: string; words: string }[] }>("/rules", {
          mentions: iri,
        }),
        get<{ facts: { terms: string[]; explicit: boolean }[] }>("/facts", {
          pattern: `[${entry.term}, ?p, ?o]`,
          limit: 50,
        }),
        get<{ count: number; facts: { terms: string[]; explicit: boolean }[] }>("/facts", {
          pattern,
          limit: 50,
        }),
      ]);
      const shown = rules.map((one) =>
        h("details", {}, h("summary", {}, one.name ?? "rule", ": ", one.words), h("pre", {}, one.text)),
      );
      return [
        h("h3", {}, term(entry.term)),
        h("p", {}, `${number(entry.explicit)} explicit, ${number(entry.derived)} derived`),
        h("h4", {}, `Rules that mention it (${rules.length})`),
        ...shown,
        h("h4", {}, "What is said about it"),
        tripleTable(axioms.facts),
        h("h4", {}, `Facts (${number(members.count)})`),
        tripleTable(members.facts),
      ];
    });
  }
  const load = (): void => {
    void show(place, async () => {
      const found = await get<{ classes: Entry[]; properties: Entry[] }>("/schema");
      return [
        tree("Classes", found.classes, (name) => `[?x, a, ${name}]`),
        tree("Properties", found.properties, (name) => `[?x, ${name}, ?y]`),
      ];
    });
  };
  return { element: h("section", { class: "schema" }, place, details), load };
}

