// Elements, built without markup: text from a store is only ever text.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, props: Props, children: Child[]): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value as EventListener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, props, children);
  return element;
}

export function s(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  fill(element, props, children);
  return element;
}

export function button(label: string, act: () => unknown, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: act, ...props }, label);
}

export function number(value: number): string {
  return value.toLocaleString("en");
}

// Replace the content of an element by the result of some work, or by its error.
export async function show(place: Element, work: () => Promise<Node | Node[]>): Promise<void> {
  place.setAttribute("aria-busy", "true");
  try {
    const found = await work();
    place.replaceChildren(...(Array.isArray(found) ? found : [found]));
  } catch (error) {
    place.replaceChildren(problem(error));
  } finally {
    place.removeAttribute("aria-busy");
  }
}

export function problem(error: unknown): HTMLElement {
  const { code, message, hint } = error as { code?: string; message: string; hint?: string };
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("strong", {}, code ? `${code}: ${message}` : message),
    hint ? h("p", {}, hint) : null,
  );
}

const measure = document.createElement("canvas").getContext("2d");

// Cut a text in the middle so that it is not wider than some pixels.
export function fit(text: string, width: number, size: number, weight = 400): string {
  if (!measure) return text;
  measure.font = `${weight} ${size}px system-ui, sans-serif`;
  if (measure.measureText(text).width <= width) return text;
  let [least, most] = [0, text.length];
  while (least < most) {
    const kept = Math.ceil((least + most) / 2);
    if (measure.measureText(middle(text, kept)).width <= width) least = kept;
    else most = kept - 1;
  }
  return middle(text, least);
}

// The width of a text in pixels.
export function widthOf(text: string, size: number): number {
  if (!measure) return text.length * size * 0.6;
  measure.font = `${size}px system-ui, sans-serif`;
  return measure.measureText(text).width;
}

function middle(text: string, kept: number): string {
  const start = Math.floor(kept * 0.35);
  return `${text.slice(0, start)}…${text.slice(text.length - (kept - start))}`;
}

// Choose between several contents of one place.
export function choices(label: string, options: [string, () => Node][], first = 0): HTMLElement {
  const place = h("div");
  const buttons = options.map(([name], i) => button(name, () => choose(i)));
  const choose = (chosen: number): void => {
    buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i === chosen)));
    place.replaceChildren(options[chosen][1]());
  };
  choose(first);
  return h("div", {}, h("div", { class: "choices", role: "group", "aria-label": label }, ...buttons), place);
}

// Show details that may be below the screen of a phone.
export function reveal(place: Element): void {
  if (matchMedia("(max-width: 60rem)").matches) {
    place.scrollIntoView({ behavior: "smooth", block: "start" });
  }
}
