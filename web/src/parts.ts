// Parts that several views share: terms, changes, contradictions, and the panel for proofs.

import {
  get,
  type Change,
  type Inconsistency,
  type Outcome,
  type Proof,
  type Rules,
} from "./api";
import { button, h, number, show } from "./dom";
import { proofDrawing } from "./drawing";
import { fact as factOf, shorten } from "./terms";

interface Facts {
  count: number;
  facts: { terms: string[]; explicit: boolean }[];
}

const panel = h("dialog", { class: "panel", "aria-label": "Details" });

function openPanel(title: string, work: () => Promise<Node | Node[]>): void {
  const body = h("div", { class: "body" });
  panel.replaceChildren(
    h("header", {}, h("h2", {}, title), button("Close", () => panel.close())),
    body,
  );
  if (!panel.isConnected) document.body.append(panel);
  if (!panel.open) panel.showModal();
  void show(body, work);
}

export async function proof(fact: string): Promise<Node> {
  const found = await get<{ proof: Proof; rules: Rules }>("/explain", { fact });
  return proofDrawing(found.proof, found.rules);
}

// Why a fact holds, over the present view.
export function why(fact: string): void {
  openPanel("Why", () => proof(fact));
}

export function whyButton(fact: string): HTMLButtonElement {
  return button("why?", () => why(fact), { class: "small", "aria-label": `Why ${fact}` });
}

// A term; an IRI opens what is known about it.
export function term(text: string): HTMLElement {
  if (!text.startsWith("<")) return h("span", { class: "literal", title: text }, shorten(text));
  return button(shorten(text), () => about(text), { class: "term", title: text });
}

function about(iri: string): void {
  openPanel(shorten(iri), async () => {
    const patterns = [`[${iri}, ?p, ?o]`, `[?s, ?p, ${iri}]`];
    const found = await Promise.all(
      patterns.map((pattern) => get<Facts>("/facts", { pattern, limit: 200 })),
    );
    return [
      h("p", {}, h("code", {}, iri)),
      h("h3", {}, `As a subject: ${number(found[0].count)} facts`),
      facts(found[0]),
      h("h3", {}, `As an object: ${number(found[1].count)} facts`),
      facts(found[1]),
    ];
  });
}

function facts(found: Facts): HTMLElement {
  return tripleTable(found.facts.map((one) => ({ terms: one.terms, explicit: one.explicit })));
}

export function badge(explicit: boolean | undefined): HTMLElement | null {
  if (explicit === undefined) return null;
  const name = explicit ? "explicit" : "derived";
  return h("span", { class: `badge ${name}` }, name);
}

export function tripleTable(rows: { terms: string[]; explicit?: boolean }[]): HTMLElement {
  return h(
    "div",
    { class: "wide" },
    h(
      "table",
      { class: "triples" },
      h(
        "tbody",
        {},
        ...rows.map(({ terms, explicit }) =>
          h(
            "tr",
            {},
            ...terms.map((text) => h("td", {}, term(text))),
            h("td", {}, badge(explicit), " ", whyButton(factOf(terms))),
          ),
        ),
      ),
    ),
  );
}

const SIGNS = { inserted: "+", deleted: "−", explicit: "!", derived: "~" };

export function changeList(changes: Change[], complete = true): HTMLElement {
  return h(
    "ul",
    { class: "changes" },
    ...changes.map((one) =>
      h(
        "li",
        { class: one.change },
        `${SIGNS[one.change]} `,
        h("code", {}, one.fact),
        " ",
        one.explicit ? null : badge(false),
        one.change === "deleted" ? null : whyButton(one.fact),
      ),
    ),
    complete ? null : h("li", {}, "… and more"),
  );
}

export function contradictions(found: Inconsistency[], rules: Rules): Node[] {
  return found.map((one) =>
    h(
      "details",
      { class: "contradiction", open: true },
      h("summary", {}, `${one.rule ?? one.constraint} is contradicted, ${number(one.count)}×`),
      ...one.proofs.slice(0, 3).map((each) => proofDrawing(each, rules)),
    ),
  );
}

export function outcome(found: Outcome): Node[] {
  const rules = [
    ...found.added_rules.map((text) => `+ ${text}`),
    ...found.removed_rules.map((text) => `− ${text}`),
  ];
  return [
    h(
      "p",
      { class: "summary" },
      `${number(found.inserted)} facts come, ${number(found.deleted)} go.`,
    ),
    ...rules.map((text) => h("pre", {}, text)),
    found.not_deleted.length
      ? h("p", { class: "note" }, `Still true, because it follows: ${found.not_deleted.join(", ")}`)
      : h("span"),
    ...contradictions(found.contradictions ?? [], found.rules ?? {}),
    changeList(found.changes, found.complete),
  ];
}
