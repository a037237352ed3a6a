// Bar charts: one bar per version, upward for what came and downward for what went.

import { h, number, s } from "./dom";

export interface Bar {
  name: string; // on the axis
  label: string; // when pointed at
  up: number;
  down: number;
  act?: () => void;
}

const WIDTH = 640;
const HEIGHT = 100;
const LEAST = 24; // bars that a chart has room for at least

// Bars on a logarithmic scale, with their ends and their largest value below.
export function bars(values: Bar[], label: string, unit: string): HTMLElement {
  const size = (value: number): number => Math.log10(1 + value);
  const two = values.some((one) => one.down > 0);
  const base = two ? HEIGHT / 2 : HEIGHT - 2;
  const most = Math.max(0.3, ...values.flatMap((one) => [size(one.up), size(one.down)]));
  const step = WIDTH / Math.max(values.length, LEAST);
  const image = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    class: "bars",
    role: "img",
    "aria-label": label,
  });
  values.forEach((one, i) => {
    const x = i * step;
    const [up, down] = [one.up, one.down].map((value) => ((base - 4) * size(value)) / most);
    const group = s("g", { onclick: one.act, class: one.act ? "active" : "" });
    group.append(
      s("title", {}, one.label),
      s("rect", { class: "hit", x, y: 0, width: step, height: HEIGHT }),
      s("rect", { class: "up", x: x + step * 0.12, y: base - up, width: step * 0.76, height: up }),
      s("rect", { class: "down", x: x + step * 0.12, y: base, width: step * 0.76, height: down }),
    );
    image.append(group);
  });
  image.append(s("line", { x1: 0, x2: WIDTH, y1: base, y2: base }));
  const largest = Math.max(0, ...values.flatMap((one) => [one.up, one.down]));
  const ends = values.length ? `${values[0].name} – ${values[values.length - 1].name}` : "";
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h("strong", {}, label), h("span", {}, `most: ${number(largest)} ${unit}`)),
    image,
    h("p", { class: "axis" }, h("span", {}, ends), h("span", {}, "logarithmic")),
  );
}
