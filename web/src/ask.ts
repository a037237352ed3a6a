// Ask: a query, and its answer as a table, a graph or a download.

import { address, get, post, query, type Binding } from "./api";
import { button, choices, h, number, show } from "./dom";
import { editor } from "./editor";
import { graphDrawing } from "./graph";
import { about, badge, term, tripleTable, why, whyButton } from "./parts";
import { fact, textOf } from "./terms";

interface Results {
  head: { vars?: string[] };
  boolean?: boolean;
  results?: { bindings: Record<string, Binding>[] };
}

const FIRST = "SELECT ?class (COUNT(?x) AS ?members) WHERE {\n  ?x a ?class\n}\nGROUP BY ?class ORDER BY DESC(?members) LIMIT 20";
const DOWNLOADS = {
  SELECT: { CSV: "text/csv", TSV: "text/tab-separated-values", JSON: "application/sparql-results+json", Parquet: "application/vnd.apache.parquet" },
  GRAPH: { Turtle: "text/turtle", "N-Triples": "application/n-triples", "JSON-LD": "application/ld+json" },
};
const ROWS = 1000;

export function ask(): { element: HTMLElement; at(version: number): void } {
  const version = h("input", { type: "number", min: 0, placeholder: "newest", id: "at-version" });
  const result = h("div", { class: "result", "aria-live": "polite" });
  const box = editor(FIRST, "SPARQL query", () => run());
  const chosen = (): number | null => (version.value === "" ? null : Number(version.value));

  function run(): void {
    void show(result, async () => {
      const started = performance.now();
      const accept = "application/sparql-results+json, application/n-triples;q=0.9";
      const response = await query(box.text(), accept, chosen());
      const seconds = ((performance.now() - started) / 1000).toFixed(3);
      const at = response.headers.get("Corollary-Version") ?? "";
      const head = (count: string): HTMLElement =>
        h("p", { class: "summary" }, `${count}, version ${at}, ${seconds} s`);
      if (response.headers.get("Content-Type")?.startsWith("application/n-triples")) {
        return graph(await response.text(), head);
      }
      const found = (await response.json()) as Results;
      if (found.boolean !== undefined) return [head(found.boolean ? "Yes" : "No")];
      return solutions(found.head.vars!, found.results!.bindings, head);
    });
  }
  // Rows of three terms may be triples of the store: those have proofs, and can be drawn.
  async function solutions(
    names: string[],
    bindings: Record<string, Binding>[],
    head: (count: string) => HTMLElement,
  ): Promise<Node[]> {
    const rows = bindings
      .slice(0, ROWS)
      .map((row) => names.map((name) => (row[name] ? textOf(row[name]) : "")));
    const found = names.length === 3 ? await statuses(rows) : [];
    const triples = rows.filter((_, i) => found[i] !== undefined);
    const first = head(bindings.length === 1 ? "1 row" : `${number(bindings.length)} rows`);
    const shown = (): Node => table(names, rows, found, bindings.length);
    if (!triples.length) return [first, downloads("SELECT"), shown()];
    const drawn = (): Node => drawing(triples, found.filter((one) => one !== undefined));
    return [first, downloads("SELECT"), choices("Show as", [["Table", shown], ["Graph", drawn]])];
  }
  function table(
    names: string[],
    rows: string[][],
    explicit: (boolean | undefined)[],
    total: number,
  ): HTMLElement {
    const proofs = explicit.some((one) => one !== undefined);
    const line = (terms: string[], i: number): Node =>
      h(
        "tr",
        {},
        ...terms.map((text) => h("td", {}, text ? term(text) : "")),
        proofs
          ? h(
              "td",
              { class: "tail" },
              badge(explicit[i]),
              " ",
              explicit[i] === undefined ? null : whyButton(fact(terms)),
            )
          : null,
      );
    const headings = names.map((name) => h("th", { scope: "col" }, name));
    return h(
      "div",
      { class: "wide" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...headings, proofs ? h("th", {}) : null)),
        h("tbody", {}, ...rows.map(line)),
      ),
      total > ROWS ? h("p", {}, `The first ${number(ROWS)} rows; download the others.`) : null,
    );
  }
  // Whether triples are explicit; undefined for those that the store does not have.
  async function statuses(rows: string[][]): Promise<(boolean | undefined)[]> {
    const whole = rows.filter(([s, p, o]) => s && s[0] !== `"` && p.startsWith("<") && o);
    if (!whole.length) return [];
    const body = { triples: whole };
    const { status } = await post<{ status: string[] }>(address("/status", { version: chosen() }), body);
    const known = new Map(whole.map((terms, i) => [terms, status[i]]));
    return rows.map((terms) => {
      const found = known.get(terms) ?? "absent";
      return found === "absent" ? undefined : found === "explicit";
    });
  }
  function drawing(triples: string[][], explicit: (boolean | undefined)[]): HTMLElement {
    const derived = new Set(triples.filter((_, i) => explicit[i] === false));
    return graphDrawing(triples, {
      why: (terms) => why(fact(terms)),
      about,
      isDerived: (terms) => derived.has(terms),
    });
  }
  async function graph(text: string, head: (count: string) => HTMLElement): Promise<Node[]> {
    const lines = text.split("\n").filter(Boolean);
    const triples = lines.map((line) => {
      const [subject, predicate] = line.split(" ", 2);
      return [subject, predicate, line.slice(subject.length + predicate.length + 2, -2)];
    });
    const shown = triples.slice(0, ROWS);
    const explicit = await statuses(shown);
    const rows = shown.map((terms, i) => ({ terms, explicit: explicit[i] }));
    const first = head(triples.length === 1 ? "1 triple" : `${number(triples.length)} triples`);
    if (!triples.length) return [first];
    return [
      first,
      downloads("GRAPH"),
      choices("Show as", [
        ["Graph", () => drawing(shown, explicit)],
        ["Table", () => tripleTable(rows)],
      ]),
    ];
  }
  function downloads(kind: keyof typeof DOWNLOADS): HTMLElement {
    const save = async (name: string, media: string): Promise<void> => {
      const data = await (await query(box.text(), media, chosen())).blob();
      const link = h("a", { href: URL.createObjectURL(data), download: `answer.${name.toLowerCase()}` });
      link.click();
      URL.revokeObjectURL(link.href);
    };
    const entries = Object.entries(DOWNLOADS[kind]);
    return h(
      "p",
      { class: "actions" },
      h("span", { class: "note" }, "Download"),
      ...entries.map(([name, media]) => button(name, () => save(name, media), { class: "small" })),
    );
  }
  const plan = (): Promise<void> =>
    show(result, async () =>
      h("pre", {}, (await get<{ plan: string }>("/plan", { query: box.text(), version: chosen() })).plan),
    );
  const element = h(
    "section",
    {},
    box.element,
    h(
      "p",
      { class: "actions" },
      button("Run", run, { class: "main", title: "Ctrl+Enter" }),
      button("Show the plan", plan),
      h("label", { for: "at-version" }, "at version "),
      version,
    ),
    result,
  );
  return {
    element,
    at: (chosen) => {
      version.value = String(chosen);
      box.focus();
    },
  };
}
