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
import { bars, type Bar } from "./charts";
import { button, choices, h, number, problem, reveal, show } from "./dom";
import { changeList, contradictions, counts, outcome, proof, term, tripleTable } from "./parts";
import { expand, shorten, shortText } from "./terms";

const MOST_COMMITS = 60;
const FEW = 8; // rules that are shown at once
const AUXILIARY = /\b_\w+\(/;
const REFLEXIVE = "eq-ref"; // everything is the same as itself: says nothing of a class

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
    h("p", { class: "note" }, "A smallest proof of a fact: each step is an instance of a rule."),
    form,
    h("p", { class: "actions" }, button("Find contradictions", check)),
    place,
  );
}

export function whatIf(committed: () => void): HTMLElement {
  const fields = {
    insert: field("Facts to insert", 4, ":cat a :Kitten ."),
    add_rules: field("Rules to add", 4, "[?x, a, :Pet] :- [?x, a, :Cat] ."),
    delete: field("Facts to delete", 3, ":dog a :Puppy ."),
    remove_rules: field("Rules to remove", 3, "[?x, a, :Pet] :- [?x, a, :Dog] ."),
  };
  const place = h("div", { "aria-live": "polite" });
  const changes = (): Record<string, string> => {
    const texts = Object.entries(fields).map(([name, one]) => [name, expand(one.value)]);
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
      const body = changes();
      const found = await post<Outcome>("/preview", body);
      const role = document.body.dataset.role;
      const rules = body.add_rules || body.remove_rules;
      const may = role === "admin" || (role === "write" && !rules);
      const title = may ? undefined : `Needs the role ${rules ? "admin" : "write"}`;
      const buttons = [
        button("Commit", commit, { class: "main", disabled: !may, title }),
        button("Drop", clear),
        title ? h("span", { class: "note" }, title) : "",
      ];
      return [
        h("h3", {}, "What would follow"),
        ...outcome(found),
        h("p", { class: "actions sticky" }, ...buttons),
      ];
    });
  return h(
    "section",
    { class: "what-if" },
    h("p", { class: "note" }, "Facts in Turtle, rules in the rule language. Nothing changes until you commit."),
    h(
      "div",
      { class: "fields" },
      ...Object.values(fields).map((one) => h("label", {}, one.getAttribute("aria-label"), one)),
    ),
    h("p", { class: "actions" }, button("What would follow?", preview, { class: "main" })),
    place,
  );
}

export function historyView(queryAt: (version: number) => void): {
  element: HTMLElement;
  load(): void;
} {
  const place = h("div");
  const hint = h("p", { class: "note" }, "Choose a version to see its changes.");
  const details = h("div", { class: "details", "aria-live": "polite" }, hint);
  const open = (commit: Commit): void => {
    for (const row of place.querySelectorAll("tr")) {
      row.classList.toggle("chosen", row.dataset.version === String(commit.version));
    }
    void show(details, async () => {
      const values = { from: commit.version - 1, to: commit.version };
      const found =
        commit.version > 0
          ? await get<{ changes: Change[]; complete: boolean }>("/diff", values)
          : { changes: [], complete: true };
      const actions = [button("Query this version", () => queryAt(commit.version))];
      if (commit.kind === "update" && document.body.dataset.role === "admin") {
        actions.push(button("Undo", () => undo(commit.version)));
      }
      return [
        h("h3", {}, `Version ${commit.version}: ${commit.message || commit.kind}`),
        counts(commit.inserted, commit.deleted),
        h("p", { class: "actions" }, ...actions),
        changeList(found.changes, found.complete),
      ];
    }).then(() => reveal(details));
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
        name: `version ${one.version}`,
        label: `version ${one.version}: +${number(one.inserted)} −${number(one.deleted)}`,
        up: one.inserted,
        down: one.deleted,
        act: () => open(one),
      }));
      const rows = commits.map((one) =>
        h(
          "tr",
          { "data-version": one.version },
          h("td", {}, button(`${one.version}`, () => open(one), { class: "term" })),
          h("td", {}, one.message || one.kind, h("span", { class: "note by" }, ` ${one.author}`)),
          h("td", { class: "end" }, counts(one.inserted, one.deleted)),
          h(
            "td",
            { class: "note end" },
            h("time", { datetime: one.time, title: one.time }, moment(one.time)),
          ),
        ),
      );
      const table = h("table", { class: "versions" }, h("tbody", {}, ...rows));
      return [bars(line, "Changes by version", "facts"), h("div", { class: "wide" }, table)];
    });
  };
  const element = h("section", { class: "beside" }, h("div", {}, place), details);
  return { element, load };
}

// A time of today as the time only.
function moment(text: string): string {
  const time = new Date(text);
  const today = new Date().toDateString() === time.toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString();
}

export function live(committed: () => void): {
  element: HTMLElement;
  start(): void;
  stop(): void;
} {
  const state = h("p", { role: "status", class: "state" }, "not connected");
  const pattern = h("input", {
    type: "text",
    "aria-label": "Pattern",
    placeholder: "every change, or a pattern: [?x, a, ?c]",
    spellcheck: "false",
  });
  const sizes = h("div");
  const times = h("div");
  const list = h("ol", { class: "commits" });
  const seen: Commit[] = [];
  let stopper: AbortController | null = null;
  const draw = (): void => {
    const changed = seen.map((one) => ({
      name: `version ${one.version}`,
      label: `version ${one.version}: +${number(one.inserted)} −${number(one.deleted)}`,
      up: one.inserted,
      down: one.deleted,
    }));
    const spent = seen.map((one) => {
      const milliseconds = Math.round(one.seconds * 10_000) / 10;
      const name = `version ${one.version}`;
      return { name, label: `${name}: ${milliseconds} ms`, up: milliseconds, down: 0 };
    });
    sizes.replaceChildren(bars(changed, "Changes by commit", "facts"));
    times.replaceChildren(bars(spent, "Update time", "ms"));
  };
  const receive = (kind: string, data: unknown): void => {
    if (kind === "error") {
      const { error } = data as { error: Error };
      state.replaceChildren(problem(error));
    }
    if (kind !== "commit") return;
    const commit = data as Commit;
    seen.push(commit);
    if (seen.length > MOST_COMMITS) seen.shift();
    const changes = commit.changes ?? [];
    list.prepend(
      h(
        "li",
        {},
        h(
          "details",
          { open: changes.length < 30 },
          h(
            "summary",
            {},
            h("strong", {}, `Version ${commit.version}`),
            h("span", { class: "note" }, ` ${commit.message || commit.kind}, ${commit.author}, `),
            h("span", { class: "note" }, `${moment(commit.time)} `),
            counts(commit.inserted, commit.deleted),
          ),
          changeList(changes, commit.complete),
        ),
      ),
    );
    while (list.children.length > MOST_COMMITS) list.lastChild?.remove();
    draw();
    committed();
  };
  const stop = (): void => {
    stopper?.abort();
    stopper = null;
    state.textContent = "not connected";
    state.classList.remove("on");
  };
  const start = (): void => {
    stop();
    stopper = new AbortController();
    const values = { pattern: expand(pattern.value) };
    const say = (text: string): void => {
      state.textContent = text;
      state.classList.toggle("on", text === "connected");
    };
    follow("/changes", values, receive, say, stopper.signal).catch((error) =>
      state.replaceChildren(problem(error)),
    );
  };
  pattern.addEventListener("change", start);
  draw();
  const element = h(
    "section",
    {},
    h("p", { class: "line" }, pattern, state),
    h("div", { class: "charts" }, sizes, times),
    list,
  );
  return { element, start, stop };
}

export function schema(): { element: HTMLElement; load(): void } {
  const place = h("div");
  const hint = h("p", { class: "note" }, "Choose a class or a property to see what is said about it.");
  const details = h("div", { class: "details", "aria-live": "polite" }, hint);

  function tree(entries: Entry[], pattern: (term: string) => string): HTMLElement {
    const byTerm = new Map(entries.map((one) => [one.term, one]));
    const below = new Map<string, { entry: Entry; inferred: boolean }[]>();
    for (const entry of entries) {
      for (const { parent, inferred } of entry.positions) {
        if (!byTerm.has(parent)) continue;
        below.set(parent, [...(below.get(parent) ?? []), { entry, inferred }]);
      }
    }
    const item = (entry: Entry, inferred: boolean, depth: number): HTMLElement => {
      const names = [entry.term, ...entry.equivalent].map((one) => shorten(one)).join(" = ");
      const count = number(entry.explicit + entry.derived);
      const label = h(
        "span",
        { class: "entry" },
        button(names, () => about(entry, pattern(entry.term)), { class: "term" }),
        h("span", { class: "count", title: `${number(entry.derived)} derived` }, count),
        inferred
          ? h("span", { class: "badge derived", title: "This position is derived" }, "inferred")
          : null,
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
    if (!roots.length) return h("p", { class: "note" }, "There are none.");
    return h("ul", { class: "tree" }, ...roots.map((one) => item(one, false, 0)));
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
      const telling = rules
        .filter((one) => one.name !== REFLEXIVE)
        .sort((a, b) => Number(AUXILIARY.test(a.text)) - Number(AUXILIARY.test(b.text)));
      const shown = telling.map((one) =>
        h(
          "details",
          { class: "rule" },
          h("summary", {}, one.name ? h("code", {}, one.name) : "", " ", shortText(one.words)),
          h("pre", {}, shortText(one.text)),
        ),
      );
      return [
        h("h3", {}, term(entry.term)),
        h(
          "p",
          { class: "note" },
          `${number(entry.explicit)} explicit, ${number(entry.derived)} derived facts`,
        ),
        h("h4", {}, `Rules that mention it (${telling.length})`),
        ...shown.slice(0, FEW),
        shown.length > FEW
          ? h("details", {}, h("summary", {}, `${shown.length - FEW} more`), ...shown.slice(FEW))
          : h("span"),
        h("h4", {}, "What is said about it"),
        tripleTable(axioms.facts),
        h("h4", {}, `Facts (${number(members.count)})`),
        tripleTable(members.facts),
      ];
    }).then(() => reveal(details));
  }
  const load = (): void => {
    void show(place, async () => {
      const found = await get<{ classes: Entry[]; properties: Entry[] }>("/schema");
      return choices("Show", [
        [`Classes (${found.classes.length})`, () => tree(found.classes, (name) => `[?x, a, ${name}]`)],
        [
          `Properties (${found.properties.length})`,
          () => tree(found.properties, (name) => `[?x, ${name}, ?y]`),
        ],
      ]);
    });
  };
  return { element: h("section", { class: "schema beside" }, place, details), load };
}

