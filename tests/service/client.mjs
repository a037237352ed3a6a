// A JavaScript client: a query, an update, and a feed, with what Node and browsers have built in.
// Usage: node client.mjs URL

const url = process.argv[2];

async function send(path, options = {}) {
  const response = await fetch(url + path, options);
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response;
}

async function values(query) {
  const headers = { Accept: "application/sparql-results+json" };
  const response = await send(`/sparql?${new URLSearchParams({ query })}`, { headers });
  return (await response.json()).results.bindings.map((row) => row.x.value);
}

// The events of a feed, until there are enough.
async function* events(response, enough) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (enough > 0) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = /^data: (.*)$/m.exec(part);
      if (!data) continue;
      yield JSON.parse(data[1]);
      if (--enough === 0) break;
    }
  }
  await reader.cancel();
}

const query = "SELECT ?x { ?x a <http://example.org/Employee> } ORDER BY ?x";
const before = await values(query);
const feed = await send(`/subscribe?${new URLSearchParams({ query })}`);
const answers = events(feed, 2);
const first = (await answers.next()).value;
const update = "INSERT DATA { <urn:js> <http://example.org/worksFor> <urn:lab> }";
await send("/sparql", { method: "POST", body: new URLSearchParams({ update }) });
const change = (await answers.next()).value;
await answers.next();
const after = await values(query);
console.log(JSON.stringify({ before, first: first.answers.length, change, after }));
