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
