// Requests to the service that serves this page.

export interface Change {
  change: "inserted" | "deleted" | "explicit" | "derived";
  fact: string;
  relation: string;
  terms: string[];
  explicit: boolean;
}
export interface Commit {
  version: number;
  time: string;
  author: string;
  kind: string;
  message: string;
  inserted: number;
  deleted: number;
  facts: number;
  seconds: number;
  algorithm: string;
  changes?: Change[];
  complete?: boolean;
}
export interface Proof {
  fact: string;
  rule: string | null;
  kind: "explicit" | "derived" | "absent" | "aggregate";
  premises: Proof[];
  repeated?: boolean;
  part?: number;
  parts?: Proof[];
}
export type Rules = Record<string, { name: string | null; words: string }>;
export interface Inconsistency {
  rule: string | null;
  constraint: string;
  count: number;
  proofs: Proof[];
}
export interface Outcome {
  version: number;
  inserted: number;
  deleted: number;
  changes: Change[];
  complete: boolean;
  not_deleted: string[];
  added_rules: string[];
  removed_rules: string[];
  contradictions?: Inconsistency[];
  rules?: Rules;
}
export interface Entry {
  term: string;
  equivalent: string[];
  explicit: number;
  derived: number;
  positions: { parent: string; inferred: boolean }[];
}
export interface Binding {
  type: "uri" | "bnode" | "literal";
  value: string;
  datatype?: string;
  "xml:lang"?: string;
}
export interface Info {
  version: number;
  facts: number;
  explicit: number;
  rules: number;
  role: "read" | "write" | "admin";
  prefixes: Record<string, string>;
}

const TOKEN = "corollary-token";

export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...options, headers });
  if (!response.ok) {
    let found = { code: "", message: response.statusText, hint: "" };
    try {
      found = (await response.json()).error ?? found;
    } catch {
      // not from the service, such as a proxy
    }
    if (response.status === 401) document.dispatchEvent(new Event("token-needed"));
    throw new Failure(response.status, found.code, found.message, found.hint);
  }
  return response;
}

type Values = Record<string, string | number | null | undefined>;

export function address(path: string, values: Values = {}): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") fields.set(name, String(value));
  }
  const text = fields.toString();
  return text ? `${path}?${text}` : path;
}

export async function get<T>(path: string, values: Values = {}): Promise<T> {
  return (await request(address(path, values))).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const options = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return (await request(path, options)).json() as Promise<T>;
}

// Send a query; the body of a POST may be long.
export async function query(
  text: string,
  accept: string,
  version: number | null,
): Promise<Response> {
  return request(address("/sparql", { version }), {
    method: "POST",
    headers: { "Content-Type": "application/sparql-query", Accept: accept },
    body: text,
  });
}

// Follow a feed, and continue after the last event when the connection ends.
export async function follow(
  path: string,
  values: Values,
  receive: (kind: string, data: unknown) => void,
  state: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = "";
  while (!signal.aborted) {
    try {
      const headers: HeadersInit = last ? { "Last-Event-ID": last } : {};
      const response = await request(address(path, values), { headers, signal });
      state("connected");
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop() ?? "";
        for (const event of events) {
          const fields = new Map<string, string>();
          for (const line of event.split("\n")) {
            const colon = line.indexOf(":");
            if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
          }
          last = fields.get("id") ?? last;
          const data = fields.get("data");
          if (data) receive(fields.get("event") ?? "", JSON.parse(data));
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Failure && error.status < 500 && error.status !== 429) throw error;
    }
    state("connecting again");
    await new Promise((wake) => setTimeout(wake, 1000));
  }
}
