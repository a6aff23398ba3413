/** HTTP requests as bytes: what the fuzzer sends over the wire. */
import fc from "fast-check";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { edited, jsonTextFrom, rarely, textFrom } from "./mutate.ts";
import { REQUESTS } from "./samples.ts";

export interface Plain {
  key?: string;
  method: string;
  path: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

/** A request with a true length and nothing odd about it except the given part. */
export function asBytes({ key, method, path, body, headers = {} }: Plain): Buffer {
  const payload = body === undefined ? undefined : Buffer.from(body as string);
  const lines = [`${method} ${path} HTTP/1.1`];
  const all: Record<string, string> = {
    host: "127.0.0.1",
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(payload === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(payload.length) }),
    ...headers,
  };
  for (const [name, value] of Object.entries(all)) lines.push(`${name}: ${value}`);
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  return payload === undefined ? head : Buffer.concat([head, payload]);
}

/** A valid body changed, sent where it belongs, now and then somewhere else. */
export function bodies(run: string): fc.Arbitrary<Buffer> {
  const one = fc.constantFrom(...REQUESTS.map((_, i) => i));
  const sent = one.chain((i) => {
    const { key, method, path, body } = REQUESTS[i]!;
    return fc
      .tuple(jsonTextFrom([body!]), rarely(one, 8), fc.constantFrom(key, key, key, "agent", "admin"))
      .map(
        ([text, other, who]): Plain => ({
          key: who,
          method: other === null ? method : REQUESTS[other]!.method,
          path: (other === null ? path : REQUESTS[other]!.path).replace("{run}", run),
          body: text,
        }),
      );
  });
  // The sandbox answers from a worker and one after the other; it has its share and no more.
  const rare = /speculate|simulate/;
  return sent
    .chain((plain) =>
      rare.test(plain.path)
        ? fc
            .nat(19)
            .map((n) => (n === 0 ? plain : { ...plain, path: `/v1/runs/${run}/intents`, key: "agent" }))
        : fc.constant(plain),
    )
    .map((plain) => asBytes(plain));
}

const PATHS = HTTP_TABLE.map(({ method, path }) => ({ method, path }));
const PARTS = [
  "..",
  "%2e%2e",
  "%00",
  "a%2f..%2fb",
  ".hidden",
  "x".repeat(129),
  "01",
  "1e0",
  "-1",
  "1.0",
  "9007199254740992",
  "%",
  "%zz",
  "%ff",
  "\u00e9",
  "a b",
  "__proto__",
  "constructor",
  "*",
  "{id}",
  ":id",
  "x\n",
  ";a=b",
  "//",
  "null",
  "0",
];
const QUERIES = [
  "limit=0",
  "limit=1",
  "limit=99999999999",
  "limit=-1",
  "limit=1&limit=2",
  "cursor=x",
  "cursor=",
  "cursor=eyJhIjoxfQ",
  "wait=1ms",
  "a[b]=c",
  "__proto__=1",
  "since=1e9d",
  "since=-1d",
  "q=%",
  "q=%00",
  "q=((((",
  "status=nope",
  "format=../x",
  "%=%",
  "&&&",
  "=",
  `q=${"a".repeat(4_000)}`,
  "tool=*",
  "from=2026-02-30",
];
const HEADERS: readonly [string, string][] = [
  ["authorization", "Bearer"],
  ["authorization", "Basic YTpi"],
  ["authorization", "Bearer agent agent"],
  ["authorization", `Bearer ${"x".repeat(5_000)}`],
  ["authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0."],
  ["content-type", "text/plain"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "application/x-www-form-urlencoded"],
  ["content-encoding", "gzip"],
  ["idempotency-key", ""],
  ["idempotency-key", "k".repeat(300)],
  ["if-match", "*"],
  ["accept", "text/html;q=9"],
  ["host", ""],
  ["host", "evil.example"],
  ["origin", "null"],
  ["cookie", "svc_console=x; __proto__=1; =;;;"],
  ["expect", "100-continue"],
  ["x-forwarded-for", "127.0.0.1"],
  ["range", "bytes=0-0"],
  ["upgrade", "h2c"],
  ["content-length", "-1"],
  ["content-length", "1e3"],
  ["transfer-encoding", "gzip"],
  ["svc-run-id", "../x"],
  ["mcp-session-id", "x"],
];

/** A route whose path, query and headers were changed; also such as no client would send. */
export function paths(run: string): fc.Arbitrary<Buffer> {
  const part = fc.oneof(
    fc.constantFrom(...PARTS),
    fc.constant(run),
    fc.string({ maxLength: 10 }).map((text) => text.replace(/[\r\n ]/g, "_")),
  );
  return fc
    .record({
      route: fc.constantFrom(
        ...PATHS,
        ...["/console", "/console/runs/{id}", "/metrics", "/readyz", "/openapi.json"].map((path) => ({
          method: "GET",
          path,
        })),
      ),
      parts: fc.array(part, { minLength: 2, maxLength: 2 }),
      query: fc.array(fc.constantFrom(...QUERIES), { maxLength: 1 }),
      headers: fc.array(fc.constantFrom(...HEADERS), { maxLength: 1 }),
      key: fc.constantFrom("agent", "agent2", "auditor", "admin", "operator", "nobody", undefined),
      method: rarely(
        fc.constantFrom("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "PROPFIND"),
        8,
      ),
      edits: rarely(
        fc.array(
          fc.record({
            at: fc.nat(300),
            cut: fc.nat(3),
            put: fc.constantFrom("%", "/", "?", "#", "\\", "..", "\u0001", "\u007f", "é"),
          }),
          { minLength: 1, maxLength: 2 },
        ),
        2,
      ),
    })
    .map(({ route, parts, query, headers, key, method, edits: changed }) => {
      let n = 0;
      const plain = route.path.replace(/\{\w+\}/g, () => parts[n++ % parts.length]!);
      const path = changed === null ? plain : `/${edited(plain.slice(1), changed)}`;
      const full = query.length === 0 ? path : `${path}?${query.join("&")}`;
      const verb = method ?? route.method;
      return asBytes({
        ...(key === undefined ? {} : { key }),
        method: verb,
        // Bytes that a browser would have escaped are sent as they are; a space would end the path.
        path: Buffer.from(full)
          .toString("latin1")
          .replace(/[ \r\n]/g, "+"),
        headers: Object.fromEntries(headers),
        ...(verb === "POST" || verb === "PATCH" ? { body: "{}" } : {}),
      });
    });
}

/** Garbage as a body, in every encoding. */
export const noise: fc.Arbitrary<Buffer> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  textFrom(['{"tool":"crm.get","args":{},"reason":"x"}']).map((text) => Buffer.from(text, "utf16le")),
);
