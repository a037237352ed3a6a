// A graph of triples: resources placed by forces, which can be moved and zoomed.

import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from "d3-force";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { button, fit, h, number, s, widthOf } from "./dom";
import { shorten } from "./terms";

interface Resource extends SimulationNodeDatum {
  term: string;
  label: string;
  half: number; // of its width
}
interface Edge {
  source: Resource;
  target: Resource;
  triples: string[][];
}

const MOST = 70;
const ROOM = 190;
const ROUNDS = 400;
const LINE = 40; // between the middles of boxes above each other
const LABEL = 0.62; // of the way along an edge: the middles of a star are crowded

export interface GraphActions {
  why(terms: string[]): void;
  about(term: string): void;
  isDerived(terms: string[]): boolean;
}

export function graphDrawing(triples: string[][], actions: GraphActions): HTMLElement {
  const degrees = new Map<string, number>();
  for (const term of triples.flatMap(([a, , b]) => [a, b])) {
    degrees.set(term, (degrees.get(term) ?? 0) + 1);
  }
  const terms = [...degrees].sort((a, b) => b[1] - a[1]).slice(0, MOST);
  const nodes = terms.map(([term]): Resource => {
    const label = fit(shorten(term), ROOM, 12);
    return { term, label, half: widthOf(label, 12) / 2 + 12 };
  });
  const byTerm = new Map(nodes.map((node) => [node.term, node]));
  const pairs = new Map<string, Edge>();
  for (const triple of triples) {
    const [source, target] = [byTerm.get(triple[0]), byTerm.get(triple[2])];
    if (!source || !target || source === target) continue;
    const key = `${triple[0]} ${triple[2]}`;
    const edge = pairs.get(key) ?? { source, target, triples: [] };
    edge.triples.push(triple);
    pairs.set(key, edge);
  }
  const edges = [...pairs.values()];
  place(nodes, edges);

  const scene = s("g");
  const image = s("svg", { class: "graph", role: "group" }, arrow(), scene);
  image.setAttribute("aria-label", `Graph of ${nodes.length} resources, listed below`);
  scene.append(...edges.flatMap((edge) => edgeParts(edge, actions)), ...nodes.map(nodeOf));

  function nodeOf(node: Resource): SVGElement {
    const kind = node.term[0] === "<" ? "iri" : node.term[0] === '"' ? "text" : "blank";
    return s(
      "g",
      {
        class: `resource ${kind}`,
        transform: `translate(${node.x} ${node.y})`,
        onclick: () => (kind === "iri" ? actions.about(node.term) : undefined),
      },
      s("title", {}, node.term),
      s("rect", { x: -node.half, y: -13, width: 2 * node.half, height: 26, rx: 13 }),
      s("text", { y: 4 }, node.label),
    );
  }
  const [left, right] = extent(nodes, (node) => node.x!, (node) => node.half);
  const [top, bottom] = extent(nodes, (node) => node.y!, () => 20);
  // On a phone, the middle at a size that can be read; the rest can be dragged into view.
  const fits = matchMedia("(max-width: 40rem)").matches ? "slice" : "meet";
  image.setAttribute("preserveAspectRatio", `xMidYMid ${fits}`);
  image.setAttribute("viewBox", `${left} ${top} ${right - left} ${bottom - top}`);
  const behaviour = zoom<SVGSVGElement, unknown>()
    .scaleExtent([0.4, 8])
    .filter((event: Event) => event.type !== "wheel" || (event as WheelEvent).ctrlKey)
    .on("zoom", (event) => scene.setAttribute("transform", event.transform.toString()));
  const drawn = select(image as SVGSVGElement).call(behaviour);
  const scaled = (factor: number) => () => behaviour.scaleBy(drawn, factor);
  const left_out = degrees.size - nodes.length;
  return h(
    "div",
    {},
    image,
    h(
      "p",
      { class: "actions" },
      button("+", scaled(1.4), { class: "small", "aria-label": "Zoom in" }),
      button("−", scaled(1 / 1.4), { class: "small", "aria-label": "Zoom out" }),
      button("Whole graph", () => behaviour.transform(drawn, zoomIdentity), { class: "small" }),
      h(
        "span",
        { class: "note" },
        left_out > 0 ? `The ${MOST} best connected resources; ${number(left_out)} are left out. ` : "",
        "Dashed lines are derived. Drag to move; Ctrl and the wheel zoom.",
      ),
    ),
  );
}

function place(nodes: Resource[], edges: Edge[]): void {
  const links = edges.map(({ source, target }) => ({ source, target }));
  const length = (edge: { source: Resource; target: Resource }): number =>
    edge.source.half + edge.target.half + 30;
  const simulation = forceSimulation(nodes)
    .force("link", forceLink<Resource, (typeof links)[number]>(links).distance(length).strength(0.4))
    .force("charge", forceManyBody().strength(-700))
    .force("x", forceX(0).strength(0.05))
    .force("y", forceY(0).strength(0.12))
    .force("collide", forceCollide<Resource>((node) => Math.max(26, node.half * 0.72)).iterations(2))
    .stop();
  simulation.tick(ROUNDS);
  for (let round = 0; round < ROUNDS && separate(nodes); round++);
}

// Move boxes that overlap apart; returns whether any did.
function separate(nodes: Resource[]): boolean {
  let moved = false;
  for (let i = 0; i < nodes.length; i++) {
    for (let j = i + 1; j < nodes.length; j++) {
      const [a, b] = [nodes[i], nodes[j]];
      const [dx, dy] = [b.x! - a.x!, b.y! - a.y!];
      const x = a.half + b.half + 12 - Math.abs(dx);
      const y = LINE - Math.abs(dy);
      if (x <= 0 || y <= 0) continue;
      moved = true;
      if (x < y) {
        const step = (dx < 0 ? -x : x) / 2 + 0.01;
        a.x! -= step;
        b.x! += step;
      } else {
        const step = (dy < 0 ? -y : y) / 2 + 0.01;
        a.y! -= step;
        b.y! += step;
      }
    }
  }
  return moved;
}

function extent(
  nodes: Resource[],
  at: (node: Resource) => number,
  size: (node: Resource) => number,
): [number, number] {
  const least = Math.min(...nodes.map((node) => at(node) - size(node)));
  const most = Math.max(...nodes.map((node) => at(node) + size(node)));
  return [least - 12, most + 12];
}

function arrow(): SVGElement {
  const shape = s("path", { d: "M0 0 8 4 0 8z", class: "arrow" });
  const size = { markerWidth: 8, markerHeight: 8, refX: 8, refY: 4 };
  return s("defs", {}, s("marker", { id: "arrow", orient: "auto", ...size }, shape));
}

// A line that ends at the border of its target, with the names of its properties in the middle.
function edgeParts(edge: Edge, actions: GraphActions): SVGElement[] {
  const { source, target, triples } = edge;
  const [dx, dy] = [target.x! - source.x!, target.y! - source.y!];
  const end = Math.min(
    dx ? (target.half + 2) / Math.abs(dx) : Infinity,
    dy ? 15 / Math.abs(dy) : Infinity,
    1,
  );
  const derived = triples.every((triple) => actions.isDerived(triple));
  const line = s("line", {
    class: derived ? "derived" : "",
    x1: source.x,
    y1: source.y,
    x2: target.x! - end * dx,
    y2: target.y! - end * dy,
    "marker-end": "url(#arrow)",
  });
  const names = triples.map((triple, i) =>
    s(
      "text",
      {
        class: "edge",
        x: source.x! + LABEL * dx,
        y: source.y! + LABEL * dy + 4 + 12 * (i - (triples.length - 1) / 2),
        onclick: () => actions.why(triple),
      },
      s("title", {}, "why?"),
      fit(shorten(triple[1]), 150, 10),
    ),
  );
  return [line, ...names];
}
