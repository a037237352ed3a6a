// The SPARQL editor: CodeMirror in a shadow root, whose styles need no exception from the policy.

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { sparql } from "codemirror-lang-sparql";
import { declaration, declaredIn, knownPrefixes, shorten } from "./terms";

export interface Editor {
  element: HTMLElement;
  text(): string;
  setText(text: string): void;
  focus(): void;
}

let vocabulary: { term: string; type: string }[] = [];

// The browser chooses between the two by the scheme of the page.
const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "light-dark(#7a1fa2, #d6a1f5)" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#a8480f, #f2b27e)" },
  { tag: [tags.number, tags.bool], color: "light-dark(#0b6b4f, #7fd6b4)" },
  { tag: [tags.variableName, tags.definition(tags.variableName)], color: "light-dark(#1d56c4, #9cc1ff)" },
  { tag: [tags.url, tags.link, tags.namespace, tags.tagName], color: "light-dark(#0f6b6b, #82d3d3)" },
  { tag: tags.comment, color: "light-dark(#5b6675, #9aa5b5)" },
]);

export function setVocabulary(classes: string[], properties: string[]): void {
  const typed = (type: string) => (term: string) => ({ term, type });
  vocabulary = [...classes.map(typed("class")), ...properties.map(typed("property"))];
}

// Insert a name, and declare its prefix if the store does not know it.
function insert(view: EditorView, completion: Completion, from: number, to: number): void {
  const text = view.state.doc.toString();
  const prefix = completion.label.split(":", 1)[0];
  const own = declaredIn(text).some(([name]) => name === prefix);
  const added = own ? "" : declaration(completion.label);
  const changes = [{ from, to, insert: completion.label }];
  if (added) changes.unshift({ from: 0, to: 0, insert: added });
  const end = from + added.length + completion.label.length;
  view.dispatch({ changes, selection: { anchor: end } });
}

function complete(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/[\w-]*:?[\w-]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const own = declaredIn(context.state.doc.toString());
  const names = vocabulary.map(({ term, type }) => ({
    label: shorten(term, own),
    type,
    apply: insert,
  }));
  const declared = knownPrefixes().map(([prefix, namespace]) => ({
    label: `${prefix}:`,
    detail: namespace,
    type: "namespace",
  }));
  const keywords = ["SELECT", "CONSTRUCT", "DESCRIBE", "ASK", "WHERE", "FILTER", "OPTIONAL", "UNION"];
  const others = [...keywords, "GROUP BY", "ORDER BY", "LIMIT", "DISTINCT", "PREFIX"];
  const options = others.map((label) => ({ label, type: "keyword" }));
  return { from: word.from, options: [...names, ...declared, ...options] };
}

export function editor(text: string, label: string, run: () => void): Editor {
  const element = document.createElement("div");
  element.className = "editor";
  const root = element.attachShadow({ mode: "open" });
  const inside = document.createElement("div");
  root.append(inside);
  const view = new EditorView({
    root,
    parent: inside,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        bracketMatching(),
        sparql(),
        syntaxHighlighting(COLORS),
        autocompletion({ override: [complete] }),
        placeholder("SELECT * { ?s ?p ?o } LIMIT 10"),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.theme({
          "&": { color: "inherit", fontSize: "0.92rem" },
          "&.cm-focused": { outline: "none" },
          ".cm-scroller": { fontFamily: "ui-monospace, monospace", minHeight: "7rem" },
          ".cm-gutters": { background: "transparent", color: "gray", border: "none" },
          ".cm-content": { caretColor: "currentColor" },
          ".cm-cursor": { borderLeftColor: "currentColor" },
          ".cm-selectionMatch, &.cm-focused .cm-matchingBracket": {
            background: "light-dark(#dce8ff, #2c4270)",
          },
          ".cm-tooltip": {
            background: "light-dark(#ffffff, #1d232d)",
            color: "inherit",
            border: "1px solid light-dark(#d5dbe4, #343d4b)",
            borderRadius: "6px",
          },
          ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "light-dark(#1d56c4, #3a63b5)" },
        }),
        Prec.highest(
          keymap.of([
            {
              key: "Mod-Enter",
              run: () => {
                run();
                return true;
              },
            },
          ]),
        ),
        keymap.of([...defaultKeymap, ...historyKeymap]),
      ],
    }),
  });
  return {
    element,
    text: () => view.state.doc.toString(),
    setText: (next) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    focus: () => view.focus(),
  };
}
