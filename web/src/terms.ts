// Terms in N-Triples syntax, shortened by the prefixes of the store.

import type { Binding } from "./api";

let prefixes: [string, string][] = [];

export function setPrefixes(found: Record<string, string>): void {
  prefixes = Object.entries(found).sort((a, b) => b[1].length - a[1].length);
}

export function knownPrefixes(): [string, string][] {
  return prefixes;
}

export function textOf(binding: Binding): string {
  if (binding.type === "uri") return `<${binding.value}>`;
  if (binding.type === "bnode") return `_:${binding.value}`;
  const quoted = JSON.stringify(binding.value);
  if (binding["xml:lang"]) return `${quoted}@${binding["xml:lang"]}`;
  return binding.datatype ? `${quoted}^^<${binding.datatype}>` : quoted;
}

const XSD = "http://www.w3.org/2001/XMLSchema#";

export function shorten(text: string): string {
  if (text.startsWith("<")) {
    const iri = text.slice(1, -1);
    if (iri === "http://www.w3.org/1999/02/22-rdf-syntax-ns#type") return "a";
    for (const [prefix, namespace] of prefixes) {
      const local = iri.slice(namespace.length);
      if (namespace && iri.startsWith(namespace) && /^[\w-]+(\.[\w-]+)*$/.test(local)) {
        return `${prefix}:${local}`;
      }
    }
    return text;
  }
  const typed = /^("(?:[^"\\]|\\.)*")\^\^<(.*)>$/s.exec(text);
  if (!typed) return text;
  const bare = [`${XSD}integer`, `${XSD}decimal`, `${XSD}boolean`, `${XSD}double`];
  return bare.includes(typed[2]) ? typed[1].slice(1, -1) : `${typed[1]}^^${shorten(`<${typed[2]}>`)}`;
}

export function fact(terms: string[]): string {
  return `[${terms.join(", ")}]`;
}
