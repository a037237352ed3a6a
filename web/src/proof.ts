// A proof: the fact on top, its premises below. Steps fold and unfold.

import { hierarchy, tree, type HierarchyPointNode } from "d3-hierarchy";
import type { Proof, Rules } from "./api";
import { button, fit, h, s } from "./dom";
import { shortFact, shorten, shortText, termsOf } from "./terms";

const WIDTH = 232;
const HEIGHT = 62;
const GAP_X = 22;
const GAP_Y = 44;
const PADDING = 11;

export function proofDrawing(root: Proof, rules: Rules): HTMLElement {
  const open = new Set<Proof>([root, ...root.premises]);
  const text = h("div", { class: "step", "aria-live": "polite" });
  const place = h("div", { class: "drawing" });
  let chosen = root;

  function resolved(node: Proof): Proof {
    return node.part === undefined ? node : (root.parts?.[node.part] ?? node);
  }
  function reason(node: Proof): string {
    if (node.kind !== "derived") return node.kind;
    return (node.rule === null ? null : rules[node.rule]?.name) ?? "by a rule";
  }
  function describe(node: Proof): void {
    chosen = node;
    const rule = node.rule === null ? undefined : rules[node.rule];
    const reasons = {
      explicit: "This fact is explicit: it is stated, not derived.",
      absent: "There is no such fact.",
      aggregate: "This value is computed from the facts below.",
      derived: shortText(rule?.words ?? ""),
    };
    text.replaceChildren(
      h("h4", {}, shortFact(node.fact)),
      h("p", {}, reasons[node.kind]),
      node.rule ? h("pre", { title: node.rule }, shortText(node.rule)) : "",
      node.repeated ? h("p", { class: "note" }, "Its proof is drawn elsewhere.") : "",
      h("p", { class: "note" }, h("code", {}, node.fact)),
    );
    for (const box of place.querySelectorAll(".node")) {
      box.classList.toggle("chosen", box.getAttribute("data-fact") === node.fact);
    }
  }
  function draw(focus?: Proof): void {
    const top = hierarchy(root, (node) => (open.has(node) ? resolved(node).premises : []));
    const laid = tree<Proof>().nodeSize([WIDTH + GAP_X, HEIGHT + GAP_Y])(top);
    const nodes = laid.descendants();
    const left = Math.min(...nodes.map((one) => one.x)) - WIDTH / 2;
    const right = Math.max(...nodes.map((one) => one.x)) + WIDTH / 2;
    const bottom = Math.max(...nodes.map((one) => one.y)) + HEIGHT;
    const [width, height] = [right - left + 16, bottom + 16];
    const image = s("svg", {
      viewBox: `${left - 8} -8 ${width} ${height}`,
      width,
      height,
      role: "tree",
      "aria-label": `Proof of ${shortFact(root.fact)}`,
    });
    for (const { source, target } of laid.links()) {
      const [y1, y2] = [source.y + HEIGHT, target.y];
      const middle = (y1 + y2) / 2;
      const [x1, x2] = [source.x, target.x];
      image.append(s("path", { d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` }));
    }
    const boxes = nodes.map(box);
    image.append(...boxes);
    place.replaceChildren(image);
    if (focus) boxes[nodes.findIndex((one) => one.data === focus)]?.focus();
    if (focus) return;
    requestAnimationFrame(() => {
      place.scrollLeft = Math.max(0, laid.x - left - place.clientWidth / 2);
    });
  }
  function box(one: HierarchyPointNode<Proof>): SVGElement {
    const node = one.data;
    const premises = resolved(node).premises.length;
    const folded = premises > 0 && !open.has(node);
    const terms = termsOf(node.fact)?.map((one) => shorten(one));
    const lines = terms ? [terms[0], `${terms[1]} ${terms[2]}`] : [shortFact(node.fact), ""];
    const act = (): void => {
      describe(node);
      if (!premises) return;
      if (open.has(node)) open.delete(node);
      else open.add(node);
      draw(node);
    };
    const room = WIDTH - 2 * PADDING;
    const mark = premises ? (folded ? `▸ ${premises}` : "▾") : "";
    return s(
      "g",
      {
        class: `node ${node.kind}${node === chosen ? " chosen" : ""}`,
        transform: `translate(${one.x - WIDTH / 2} ${one.y})`,
        tabindex: 0,
        role: "treeitem",
        "aria-level": one.depth + 1,
        "aria-expanded": premises ? String(!folded) : undefined,
        "aria-label": `${shortFact(node.fact)}, ${reason(node)}`,
        "data-fact": node.fact,
        onclick: act,
        onfocus: () => describe(node),
        onkeydown: (event: KeyboardEvent) => key(event, one, act),
      },
      s("title", {}, node.fact),
      s("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
      s("text", { x: PADDING, y: 19, class: "subject" }, fit(lines[0], room, 12, 600)),
      s("text", { x: PADDING, y: 35 }, fit(lines[1], room, 12)),
      s("text", { x: PADDING, y: 53, class: "reason" }, fit(reason(node), room - 34, 11)),
      s("text", { x: WIDTH - PADDING, y: 53, class: "fold" }, mark),
    );
  }
  // Enter and space fold; arrows move to premises, siblings and conclusions.
  function key(event: KeyboardEvent, one: HierarchyPointNode<Proof>, act: () => void): void {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act();
      return;
    }
    const siblings = one.parent?.children ?? [one];
    const at = siblings.indexOf(one);
    const next = {
      ArrowDown: one.children?.[0],
      ArrowUp: one.parent,
      ArrowRight: siblings[at + 1],
      ArrowLeft: siblings[at - 1],
    }[event.key];
    if (next === undefined || next === null) return;
    event.preventDefault();
    const boxes = [...place.querySelectorAll<SVGElement>(".node")];
    let root = one;
    while (root.parent) root = root.parent;
    boxes[root.descendants().indexOf(next)]?.focus();
  }
  const unfold = (): void => {
    const stack = [root];
    while (stack.length && open.size < 500) {
      const next = stack.pop()!;
      open.add(next);
      stack.push(...resolved(next).premises);
    }
    draw();
  };
  const fold = (): void => {
    open.clear();
    open.add(root);
    draw();
  };
  draw();
  describe(root);
  return h(
    "div",
    { class: "proof" },
    h(
      "div",
      {},
      h("p", { class: "actions" }, button("Unfold all", unfold), button("Fold", fold)),
      place,
    ),
    text,
  );
}
