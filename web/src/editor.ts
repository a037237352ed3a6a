// The SPARQL editor: CodeMirror in a shadow root, whose styles need no exception from the policy.

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, defaultHighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { sparql } from "codemirror-lang-sparql";
import { knownPrefixes, shorten } from "./terms";

export interface Editor {
  element: HTMLElement;
  text(): string;
  setText(text: string): void;
  focus(): void;
}

let vocabulary: Completion[] = [];

export function setVocabulary(classes: string[], properties: string[]): void {
  const option = (type: string) => (term: string) => ({ label: shorten(term), type });
  vocabulary = [...classes.map(option("class")), ...properties.map(option("property"))];
}

function complete(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/[\w-]*:?[\w-]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const declared = knownPrefixes().map(([prefix, namespace]) => ({
    label: `${prefix}:`,
    detail: namespace,
    type: "namespace",
  }));
  const keywords = ["SELECT", "CONSTRUCT", "DESCRIBE", "ASK", "WHERE", "FILTER", "OPTIONAL", "UNION"];
  const others = [...keywords, "GROUP BY", "ORDER BY", "LIMIT", "DISTINCT", "PREFIX"];
  const options = others.map((label) => ({ label, type: "keyword" }));
  return { from: word.from, options: [...vocabulary, ...declared, ...options] };
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
        syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        autocompletion({ override: [complete] }),
        placeholder("SELECT * { ?s ?p ?o } LIMIT 10"),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.theme({
          "&": { color: "inherit", fontSize: "0.95rem" },
          ".cm-scroller": { fontFamily: "ui-monospace, monospace", minHeight: "7rem" },
          ".cm-gutters": { background: "transparent", color: "gray", border: "none" },
          ".cm-content": { caretColor: "currentColor" },
          ".cm-cursor": { borderLeftColor: "currentColor" },
          ".cm-tooltip": { background: "Canvas", color: "CanvasText" },
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
