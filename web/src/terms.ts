// Terms in N-Triples syntax, shortened by the prefixes of the store. Namespaces of its vocabulary
// that have no prefix get one from their name, which the page expands before it sends a text.

import type { Binding } from "./api";

type Prefix = [string, string];

let given: Prefix[] = [];
let made: Prefix[] = [];
let all: Prefix[] = [];

function sorted(): Prefix[] {
  return [...given, ...made].sort((a, b) => b[1].length - a[1].length);
}

export function setPrefixes(found: Record<string, string>): void {
  given = Object.entries(found);
  all = sorted();
}

// Make prefixes for the namespaces of classes and properties: `…/univ-bench.owl#` is `univ-bench:`.
export function setVocabularyTerms(terms: string[]): void {
  const known = new Set(given.map(([, namespace]) => namespace));
  const taken = new Set(given.map(([prefix]) => prefix));
  made = [];
  for (const term of terms) {
    const namespace = /^<(.*[#/])[\w-]+>$/.exec(term)?.[1];
    if (!namespace || known.has(namespace)) continue;
    known.add(namespace);
    const last = namespace.slice(0, -1).split(/[/:]/).pop() ?? "";
    const base = last.replace(/\.\w+$/, "").replace(/^[^A-Za-z]+|[^\w-]/g, "").toLowerCase() || "ns";
    let name = base;
    for (let number = 2; taken.has(name); number++) name = `${base}${number}`;
    taken.add(name);
    made.push([name, namespace]);
  }
  all = sorted();
}

export function knownPrefixes(): Prefix[] {
  return all;
}

// The prefixes that a query declares.
export function declaredIn(query: string): Prefix[] {
  const found = query.matchAll(/\bPREFIX\s+([\w.-]*):\s*<([^<>]*)>/gi);
  return [...found].map(([, prefix, namespace]): Prefix => [prefix, namespace]);
}

// The declaration that a query needs for a short name; empty if the store knows its prefix.
export function declaration(short: string): string {
  const prefix = short.split(":", 1)[0];
  const found = made.find(([name]) => name === prefix);
  return found ? `PREFIX ${found[0]}: <${found[1]}>\n` : "";
}

const TOKENS = /"(?:[^"\\]|\\.)*"|<[^<>\s]*>|[A-Za-z][\w-]*:[\w-]+/g;

// Write out the names whose prefixes only the page knows.
export function expand(text: string): string {
  const namespaces = new Map(made);
  return text.replace(TOKENS, (token) => {
    if (token[0] === '"' || token[0] === "<") return token;
    const colon = token.indexOf(":");
    const namespace = namespaces.get(token.slice(0, colon));
    return namespace === undefined ? token : `<${namespace}${token.slice(colon + 1)}>`;
  });
}

export function textOf(binding: Binding): string {
  if (binding.type === "uri") return `<${binding.value}>`;
  if (binding.type === "bnode") return `_:${binding.value}`;
  const quoted = JSON.stringify(binding.value);
  if (binding["xml:lang"]) return `${quoted}@${binding["xml:lang"]}`;
  return binding.datatype ? `${quoted}^^<${binding.datatype}>` : quoted;
}

const XSD = "http://www.w3.org/2001/XMLSchema#";
const BARE = ["integer", "decimal", "boolean", "double"].map((name) => XSD + name);

// A term as people read it: with a prefix, or at least without the scheme.
export function shorten(text: string, own: Prefix[] = []): string {
  if (text.startsWith("<")) {
    const iri = text.slice(1, -1);
    if (iri === "http://www.w3.org/1999/02/22-rdf-syntax-ns#type") return "a";
    for (const [prefix, namespace] of [...own, ...all]) {
      const local = iri.slice(namespace.length);
      if (namespace && iri.startsWith(namespace) && /^[\w-]+(\.[\w-]+)*$/.test(local)) {
        return `${prefix}:${local}`;
      }
    }
    return /^https?:\/\/./.test(iri) ? iri.replace(/^https?:\/\/(www\.)?/, "") : text;
  }
  const typed = /^("(?:[^"\\]|\\.)*")\^\^<(.*)>$/s.exec(text);
  if (!typed) return text;
  const datatype = shorten(`<${typed[2]}>`);
  return BARE.includes(typed[2]) ? typed[1].slice(1, -1) : `${typed[1]}^^${datatype}`;
}

export function fact(terms: string[]): string {
  return `[${terms.join(", ")}]`;
}

// The terms of a triple as the service writes it; null for other facts.
export function termsOf(text: string): string[] | null {
  const inside = /^\[(.*)\]$/s.exec(text)?.[1];
  if (inside === undefined) return null;
  const parts = inside.match(/(?:"(?:[^"\\]|\\.)*"|<[^<>]*>|[^,"<])+/g)?.map((one) => one.trim());
  return parts?.length === 3 ? parts : null;
}

// A fact as people read it.
export function shortFact(text: string): string {
  const terms = termsOf(text);
  return terms ? terms.map((term) => shorten(term)).join(" ") : shortText(text);
}

// A text such as a rule with its IRIs shortened.
export function shortText(text: string): string {
  return text.replace(TOKENS, (token) => (token[0] === "<" ? shorten(token) : token));
}

// Whether a triple says nothing to a reader: what holds of everything, or of a term and itself.
export function isTrivial(text: string): boolean {
  const terms = termsOf(text)?.map((term) => shorten(term));
  if (!terms) return false;
  const [subject, property, object] = terms;
  if (property === "a") return object === "owl:Thing" || object === "rdfs:Resource";
  const reflexive = ["owl:sameAs", "owl:equivalentClass", "owl:equivalentProperty"];
  const below = property === "rdfs:subClassOf";
  if (!below && property !== "rdfs:subPropertyOf" && !reflexive.includes(property)) return false;
  if (subject === object) return true;
  return below && (["owl:Thing", "rdfs:Resource"].includes(object) || subject === "owl:Nothing");
}
