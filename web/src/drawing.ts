// Drawings in SVG: proofs as trees that unfold, graphs of triples, and bar charts.

import type { Proof, Rules } from "./api";
import { button, h, s } from "./dom";
import { shorten } from "./terms";

const WIDTH = 210;
const HEIGHT = 44;
const GAP_X = 18;
const GAP_Y = 54;

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

interface Placed {
  node: Proof;
  x: number;
  y: number;
  below: Placed[];
}

// A proof: the fact on top, its premises below. Nodes fold and unfold.
export function proofDrawing(root: Proof, rules: Rules): HTMLElement {
  const open = new Set<Proof>([root, ...root.premises]);
  const text = h("div", { class: "step", "aria-live": "polite" });
  const place = h("div", { class: "drawing" });

  function resolved(node: Proof): Proof {
    return node.part === undefined ? node : (root.parts?.[node.part] ?? node);
  }
  function describe(node: Proof): void {
    const rule = node.rule === null ? undefined : rules[node.rule];
    const reasons = {
      explicit: "This fact is explicit: it is stated, not derived.",
      absent: "There is no such fact.",
      aggregate: "This value is computed from the facts below.",
      derived: rule?.words ?? "",
    };
    text.replaceChildren(
      h("code", {}, node.fact),
      h("p", {}, rule?.name ? `by [${rule.name}] ` : "", reasons[node.kind]),
      node.rule ? h("pre", {}, node.rule) : "",
      node.repeated ? h("p", {}, "Its proof is drawn elsewhere in this drawing.") : "",
    );
  }
  function layout(node: Proof, depth: number, left: { x: number }): Placed {
    const real = resolved(node);
    const below = open.has(node) ? real.premises.map((one) => layout(one, depth + 1, left)) : [];
    let x = left.x;
    if (below.length) x = (below[0].x + below[below.length - 1].x) / 2;
    else left.x += WIDTH + GAP_X;
    return { node, x, y: depth * (HEIGHT + GAP_Y), below };
  }
  function draw(focus?: Proof): void {
    const end = { x: 0 };
    const top = layout(root, 0, end);
    const lines: SVGElement[] = [];
    const boxes: SVGElement[] = [];
    let height = 0;
    const visit = (one: Placed): void => {
      height = Math.max(height, one.y + HEIGHT);
      for (const child of one.below) {
        const [x1, y1] = [one.x + WIDTH / 2, one.y + HEIGHT];
        const [x2, y2] = [child.x + WIDTH / 2, child.y];
        const middle = (y1 + y2) / 2;
        lines.push(s("path", { d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` }));
        visit(child);
      }
      boxes.push(box(one));
    };
    visit(top);
    const width = Math.max(end.x - GAP_X, WIDTH);
    const image = s(
      "svg",
      { viewBox: `-4 -4 ${width + 8} ${height + 8}`, width: width + 8, height: height + 8 },
      ...lines,
      ...boxes,
    );
    image.setAttribute("role", "tree");
    image.setAttribute("aria-label", `Proof of ${root.fact}`);
    place.replaceChildren(image);
    if (focus) {
      const again = boxes.find((one) => one.getAttribute("data-fact") === focus.fact);
      again?.focus();
    }
  }
  function box(one: Placed): SVGElement {
    const { node } = one;
    const real = resolved(node);
    const folded = real.premises.length > 0 && !open.has(node);
    const rule = node.rule === null ? null : rules[node.rule];
    const reason = node.kind === "derived" ? (rule?.name ?? "a rule") : node.kind;
    const act = (): void => {
      describe(node);
      if (real.premises.length) {
        if (open.has(node)) open.delete(node);
        else open.add(node);
        draw(node);
      }
    };
    const found = s(
      "g",
      {
        class: `node ${node.kind}`,
        transform: `translate(${one.x} ${one.y})`,
        tabindex: 0,
        role: "treeitem",
        "aria-expanded": real.premises.length ? String(!folded) : undefined,
        "aria-label": `${node.fact}, ${reason}`,
        "data-fact": node.fact,
        onclick: act,
        onfocus: () => describe(node),
        onkeydown: (event: KeyboardEvent) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            act();
          }
        },
      },
      s("title", {}, node.fact),
      s("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
      s("text", { x: 10, y: 18 }, cut(node.fact, 30)),
      s("text", { x: 10, y: 35, class: "reason" }, cut(reason, 26) + (folded ? "  ▸" : "")),
    );
    return found;
  }
  const unfold = (node: Proof): void => {
    const stack = [node];
    while (stack.length && open.size < 500) {
      const next = stack.pop()!;
      open.add(next);
      stack.push(...resolved(next).premises);
    }
    draw();
  };
  describe(root);
  draw();
  return h(
    "div",
    { class: "proof" },
    h("p", { class: "actions" }, button("Unfold all", () => unfold(root))),
    place,
    text,
  );
}

// A graph of triples, placed by springs.
export function graphDrawing(triples: string[][], why: (terms: string[]) => void): Element {
  const names = [...new Set(triples.flatMap(([a, , b]) => [a, b]))].slice(0, 60);
  const at = new Map(
    names.map((name, i) => {
      const angle = (2 * Math.PI * i) / names.length;
      return [name, { x: 400 + 260 * Math.cos(angle), y: 260 + 200 * Math.sin(angle) }];
    }),
  );
  const edges = triples.filter(([a, , b]) => at.has(a) && at.has(b) && a !== b).slice(0, 150);
  for (let round = 0; round < 150; round++) {
    const heat = 12 * (1 - round / 150);
    const force = new Map(names.map((name) => [name, { x: 0, y: 0 }]));
    for (const a of names) {
      for (const b of names) {
        if (a === b) continue;
        const [p, q] = [at.get(a)!, at.get(b)!];
        const [dx, dy] = [p.x - q.x, p.y - q.y];
        const near = Math.max(dx * dx + dy * dy, 1);
        force.get(a)!.x += (9000 * dx) / near;
        force.get(a)!.y += (9000 * dy) / near;
      }
    }
    for (const [a, , b] of edges) {
      const [p, q] = [at.get(a)!, at.get(b)!];
      for (const [name, sign] of [[a, 1], [b, -1]] as const) {
        force.get(name)!.x += sign * 0.6 * (q.x - p.x);
        force.get(name)!.y += sign * 0.6 * (q.y - p.y);
      }
    }
    for (const name of names) {
      const [p, f] = [at.get(name)!, force.get(name)!];
      const size = Math.max(Math.hypot(f.x, f.y), 1);
      p.x = Math.min(740, Math.max(60, p.x + (heat * f.x) / size));
      p.y = Math.min(500, Math.max(20, p.y + (heat * f.y) / size));
    }
  }
  const image = s("svg", { viewBox: "0 0 800 520", class: "graph", role: "img" });
  image.setAttribute("aria-label", `Graph of ${names.length} resources`);
  const labels = new Map<string, number>();
  for (const [a, predicate, b] of edges) {
    const [p, q] = [at.get(a)!, at.get(b)!];
    const pair = [a, b].sort().join(" ");
    const above = labels.get(pair) ?? 0; // labels of the same line stand below each other
    labels.set(pair, above + 1);
    const [x, y] = [(p.x + q.x) / 2, (p.y + q.y) / 2 + 11 * above];
    image.append(
      s("line", { x1: p.x, y1: p.y, x2: q.x, y2: q.y }),
      s(
        "text",
        { x, y, class: "edge", onclick: () => why([a, predicate, b]) },
        cut(shorten(predicate), 22),
      ),
    );
  }
  for (const name of names) {
    const p = at.get(name)!;
    image.append(
      s("circle", { cx: p.x, cy: p.y, r: 6 }),
      s("text", { x: p.x, y: p.y - 10 }, s("title", {}, name), cut(shorten(name), 26)),
    );
  }
  return image;
}

export interface Bar {
  label: string;
  up: number;
  down: number;
  act?: () => void;
}

// Bars upward and downward from a line, on a logarithmic scale.
export function bars(values: Bar[], label: string): Element {
  const size = (value: number) => Math.log10(1 + value);
  const most = Math.max(1, ...values.flatMap((one) => [size(one.up), size(one.down)]));
  const step = 640 / Math.max(values.length, 12);
  const image = s("svg", { viewBox: "0 0 640 120", class: "bars", role: "img" });
  image.setAttribute("aria-label", label);
  values.forEach((one, i) => {
    const [up, down] = [(54 * size(one.up)) / most, (54 * size(one.down)) / most];
    const group = s(
      "g",
      { onclick: one.act },
      s("title", {}, one.label),
      s("rect", { class: "up", x: i * step, y: 60 - up, width: step * 0.8, height: up }),
      s("rect", { class: "down", x: i * step, y: 60, width: step * 0.8, height: down }),
    );
    image.append(group);
  });
  image.append(s("line", { x1: 0, x2: 640, y1: 60, y2: 60 }));
  return image;
}
