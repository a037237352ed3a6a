// Parts that several views share: terms, changes, contradictions, and the panel for details.

import {
  get,
  type Change,
  type Inconsistency,
  type Outcome,
  type Proof,
  type Rules,
} from "./api";
import { button, h, number, show } from "./dom";
import { proofDrawing } from "./proof";
import { expand, fact as factOf, isTrivial, shortFact, shorten } from "./terms";

interface Facts {
  count: number;
  facts: { terms: string[]; explicit: boolean }[];
}

const panel = h("dialog", { class: "panel", "aria-label": "Details" });
panel.addEventListener("click", (event) => {
  if (event.target === panel) panel.close(); // beside it
});

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
  const found = await get<{ proof: Proof; rules: Rules }>("/explain", { fact: expand(fact) });
  return proofDrawing(found.proof, found.rules);
}

// Why a fact holds, over the present view.
export function why(fact: string): void {
  openPanel("Why", () => proof(fact));
}

export function whyButton(fact: string): HTMLButtonElement {
  return button("why?", () => why(fact), { class: "small", "aria-label": `Why ${shortFact(fact)}` });
}

// A term; an IRI opens what is known about it.
export function term(text: string): HTMLElement {
  if (!text.startsWith("<")) return h("span", { class: "literal", title: text }, shorten(text));
  return button(shorten(text), () => about(text), { class: "term", title: text });
}

export function about(iri: string): void {
  openPanel(shorten(iri), async () => {
    const patterns = [`[${iri}, ?p, ?o]`, `[?s, ?p, ${iri}]`];
    const found = await Promise.all(
      patterns.map((pattern) => get<Facts>("/facts", { pattern, limit: 200 })),
    );
    return [
      h("p", { class: "note" }, h("code", {}, iri)),
      h("h3", {}, `As a subject: ${number(found[0].count)} facts`),
      tripleTable(found[0].facts),
      h("h3", {}, `As an object: ${number(found[1].count)} facts`),
      tripleTable(found[1].facts),
    ];
  });
}

export function badge(explicit: boolean | undefined): HTMLElement | null {
  if (explicit === undefined) return null;
  const name = explicit ? "explicit" : "derived";
  return h("span", { class: `badge ${name}` }, name);
}

export function tripleTable(rows: { terms: string[]; explicit?: boolean }[]): HTMLElement {
  const kept = rows.filter(({ terms }) => !isTrivial(factOf(terms)));
  const line = ({ terms, explicit }: { terms: string[]; explicit?: boolean }): Node =>
    h(
      "tr",
      {},
      ...terms.map((text) => h("td", {}, term(text))),
      h("td", { class: "tail" }, badge(explicit), " ", whyButton(factOf(terms))),
    );
  return h(
    "div",
    { class: "wide" },
    h("table", { class: "triples" }, h("tbody", {}, ...kept.map(line))),
    leftOut(rows.length - kept.length),
  );
}

function leftOut(count: number): HTMLElement | null {
  if (!count) return null;
  const what = count === 1 ? "1 trivial fact is" : `${number(count)} trivial facts are`;
  return h("p", { class: "note" }, `${what} left out, such as “everything is an owl:Thing”.`);
}

const GROUPS: [Change["change"], string, string][] = [
  ["inserted", "+", "come"],
  ["deleted", "−", "go"],
  ["explicit", "!", "were derived and are explicit now"],
  ["derived", "~", "were explicit and are only derived now"],
];

// Changes by kind, explicit ones first; what says nothing is counted only.
export function changeList(changes: Change[], complete = true): HTMLElement {
  const kept = changes.filter((one) => !isTrivial(one.fact));
  const groups = GROUPS.map(([kind, sign, title]) => ({
    kind,
    sign,
    title,
    rows: kept.filter((one) => one.change === kind),
  })).filter(({ rows }) => rows.length);
  return h(
    "div",
    { class: "changes" },
    ...groups.map(({ kind, sign, title, rows }) =>
      h(
        "div",
        { class: kind },
        groups.length > 1 ? h("h4", {}, `${number(rows.length)} ${title}`) : null,
        h("ul", {}, ...rows.map((one) => changeLine(one, sign))),
      ),
    ),
    leftOut(changes.length - kept.length),
    complete ? null : h("p", { class: "note" }, "… and more, which /diff lists."),
  );
}

function changeLine(one: Change, sign: string): HTMLElement {
  return h(
    "li",
    {},
    h("span", { class: "sign" }, sign),
    h("span", { class: "fact", title: one.fact }, shortFact(one.fact)),
    one.explicit ? null : badge(false),
    one.change === "deleted" ? null : whyButton(one.fact),
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

export function counts(inserted: number, deleted: number): HTMLElement {
  return h(
    "p",
    { class: "counts" },
    h("span", { class: inserted ? "up" : "none" }, `+${number(inserted)}`),
    h("span", { class: deleted ? "down" : "none" }, `−${number(deleted)}`),
  );
}

export function outcome(found: Outcome): Node[] {
  const rules = [
    ...found.added_rules.map((text) => `+ ${text}`),
    ...found.removed_rules.map((text) => `− ${text}`),
  ];
  const still = found.not_deleted.map(shortFact).join(", ");
  return [
    counts(found.inserted, found.deleted),
    ...rules.map((text) => h("pre", {}, text)),
    ...(still ? [h("p", { class: "note" }, `Still true, because it follows: ${still}`)] : []),
    ...contradictions(found.contradictions ?? [], found.rules ?? {}),
    changeList(found.changes, found.complete),
  ];
}
