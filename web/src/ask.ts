// Ask: a query, and its answer as a table, a graph or a download.

import { get, post, query, type Binding } from "./api";
import { button, h, number, show } from "./dom";
import { graphDrawing } from "./drawing";
import { editor } from "./editor";
import { term, tripleTable, why } from "./parts";
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
      const rows = found.results!.bindings;
      return [head(`${number(rows.length)} rows`), downloads("SELECT"), table(found.head.vars!, rows)];
    });
  }
  function table(names: string[], rows: Record<string, Binding>[]): HTMLElement {
    const isTriple = names.length === 3;
    return h(
      "div",
      { class: "wide" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)))),
        h(
          "tbody",
          {},
          ...rows.slice(0, ROWS).map((row) => {
            const terms = names.map((name) => (row[name] ? textOf(row[name]) : ""));
            const whole = isTriple && terms.every(Boolean);
            return h(
              "tr",
              {},
              ...terms.map((text) => h("td", {}, text ? term(text) : "")),
              whole
                ? h("td", {}, button("why?", () => why(fact(terms)), { class: "small" }))
                : null,
            );
          }),
        ),
      ),
      rows.length > ROWS ? h("p", {}, `The first ${number(ROWS)} rows; download the others.`) : null,
    );
  }
  async function graph(text: string, head: (count: string) => HTMLElement): Promise<Node[]> {
    const lines = text.split("\n").filter(Boolean);
    const triples = lines.map((line) => {
      const [subject, predicate] = line.split(" ", 2);
      return [subject, predicate, line.slice(subject.length + predicate.length + 2, -2)];
    });
    const shown = triples.slice(0, ROWS);
    const { status } = await post<{ status: string[] }>("/status", { triples: shown });
    const rows = shown.map((terms, i) => ({
      terms,
      explicit: status[i] === "absent" ? undefined : status[i] === "explicit",
    }));
    return [
      head(`${number(triples.length)} triples`),
      downloads("GRAPH"),
      graphDrawing(shown, (terms) => why(fact(terms))),
      tripleTable(rows),
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
      "Download: ",
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
