import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { manifestProblems, readManifestEntry } from "../manifest/load.ts";
import { manifestSet } from "../manifest/set.ts";
import { canBothFit, fillPath, matchPath, type PathPattern, parsePathPattern } from "./path-pattern.ts";
import { buildRequest, HttpRoutes, type RequestBody, requestArgs, splitHost } from "./routes.ts";
import { headerProblem, isHttpProblem, readHttpTarget } from "./target.ts";

const pattern = (text: string): PathPattern => {
  const read = parsePathPattern(text);
  if ("problem" in read) throw new Error(read.problem);
  return read;
};
const routes = (...https: object[]) =>
  new HttpRoutes(
    manifestSet(
      https.map((http, i) =>
        readManifestEntry({ tool: `t${i}`, effect: "read", permission: "p", http } as never),
      ),
    ),
  );
const HOST = { scheme: "https", host: "api.test", port: 443 } as const;
const bodyOf = (type: string | undefined, text: string): RequestBody => {
  const content = Buffer.from(text, "latin1");
  return { type, content, bytes: content.length, sha256: "h" };
};
const target = (text: string) => {
  const read = readHttpTarget(text);
  if (isHttpProblem(read)) throw new Error(read.problem);
  return read;
};

describe("manifests", () => {
  test.each([
    ["host: 'https://api.test', method: GET, path: /a", "http.host: is not one host"],
    ["host: '*.api.test', method: GET, path: /a", "http.host: is not one host"],
    ["host: '{region}.api.test', method: GET, path: /a", "http.host: is not one host"],
    ["host: 'api.test:70000', method: GET, path: /a", "http.host: has a port over 65535"],
    ["host: api.test, method: get, path: /a", "http.method: must be a method in capitals"],
    ["host: api.test, method: CONNECT, path: /a", "http.method"],
    ["host: api.test, method: GET, path: a", "http.path: must begin with /"],
    ["host: api.test, method: GET, path: /a?b=c", "http.path: must not hold a query"],
    ["host: api.test, method: GET, path: /a//b", "http.path: must not repeat slashes"],
    ["host: api.test, method: GET, path: /a/../b", "http.path: must not hold dot segments"],
    ["host: api.test, method: GET, path: /a%2fb", "http.path: must hold plain characters"],
    [
      "host: api.test, method: GET, path: '/{a}{b}'",
      "http.path: two places in a segment need text between them",
    ],
    ["host: api.test, method: GET, path: '/{a}/{a}'", "http.path: names {a} twice"],
    ["host: api.test, method: GET, path: '/{}'", "http.path: a place is a name in braces"],
    ["host: api.test, method: GET, path: '/a}'", "http.path: holds a brace"],
    ["host: api.test, method: GET, path: /a, scheme: ftp", "http.scheme"],
    ["host: api.test, method: GET, path: /a, failed: {}", "http.failed: matches every answer"],
    ["host: api.test, method: GET, path: /a, answer_headers: [ETag]", "http.answer_headers"],
    ["host: api.test, method: GET, path: /a, query: x", "http"],
  ])("%s", (http, expected) => {
    verifies("beyond.http.manifest-errors");
    const text = `- {tool: t, effect: read, permission: p, http: {${http}}}`;
    expect(manifestProblems(text, "m.yaml").join("\n")).toContain(expected);
  });

  test("undos and reads of an http tool are http tools", () => {
    verifies("beyond.http.manifest-errors");
    const text = `
- {tool: look, effect: read, permission: p}
- {tool: undo, effect: irreversible, permission: p}
- tool: t
  effect: compensable
  permission: p
  http: {host: api.test, method: POST, path: /a}
  before: {tool: look}
  compensation: {tool: undo}
  verification: {tool: look, expect: {}}
`;
    expect(manifestProblems(text, "m.yaml")).toEqual([
      "m.yaml:4: tool t: before.tool: look has no http; the undos and reads of an http tool are http tools",
      "m.yaml:4: tool t: compensation.tool: undo has no http; the undos and reads of an http tool are http tools",
      "m.yaml:4: tool t: verification.tool: look has no http; the undos and reads of an http tool are http tools",
    ]);
  });

  test.each([
    ["/users/{id}", "/users/me", true],
    ["/users/{id}", "/users/{name}", true],
    ["/a/{x}.json", "/a/b{y}", true],
    ["/a/{x}.json", "/a/{x}.xml", false],
    ["/a/x{y}z", "/a/xz", false],
    ["/a/{x}:cancel", "/a/{x}:done", false],
    ["/a", "/b", false],
    ["/a", "/a/", false],
    ["/a/{x}", "/a/{x}/b", false],
  ])("%s and %s: both fit %s", (a, b, both) => {
    verifies("beyond.http.one-fit");
    expect(canBothFit(pattern(a), pattern(b))).toBe(both);
    const entry = (tool: string, path: string) =>
      `- {tool: ${tool}, effect: read, permission: p, http: {host: api.test, method: GET, path: "${path}"}}`;
    const problems = manifestProblems(`${entry("one", a)}\n${entry("two", b)}`, "m.yaml").join();
    if (both) expect(problems).toContain("one at m.yaml:1 fits the same requests");
    else expect(problems).toBe("");
  });

  test("versions of one tool may fit the same request, and hosts are compared with their ports", () => {
    verifies("beyond.http.one-fit");
    const entry = (tool: string, version: number, host: string) =>
      `- {tool: ${tool}, version: ${version}, effect: read, permission: p, http: {host: "${host}", method: GET, path: /a}}`;
    expect(manifestProblems(`${entry("a", 1, "x.test")}\n${entry("a", 2, "x.test")}`, "m")).toEqual([]);
    expect(manifestProblems(`${entry("a", 1, "x.test")}\n${entry("b", 1, "x.test:8443")}`, "m")).toEqual([]);
    expect(manifestProblems(`${entry("a", 1, "X.test")}\n${entry("b", 1, "x.test:443")}`, "m")).toHaveLength(
      1,
    );
  });

  test("two patterns that one path fits are always found", () => {
    verifies("beyond.http.one-fit");
    const piece = fc.constantFrom("a", "b", "{x}", "ab", "-");
    const segment = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(""));
    const text = fc.string({ unit: fc.constantFrom("a", "b", "-"), minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(segment, segment, text, (a, b, path) => {
        const [one, two] = [parsePathPattern(`/${a}`), parsePathPattern(`/${b}`)];
        if ("problem" in one || "problem" in two) return;
        if (matchPath(one, [path]) && matchPath(two, [path])) expect(canBothFit(one, two)).toBe(true);
      }),
    );
  });
});

describe("targets", () => {
  test.each([
    "/a//b",
    "//a",
    "/a/../b",
    "/a/%2e%2e/b",
    "/a/.%2E/b",
    "/a/%252e%252e/b",
    "/a/..;x=1/b",
    "/a/.",
    "/a%2fb",
    "/a%2Fb",
    "/a%252fb",
    "/a%5cb",
    "/a\\b",
    "/a%00b",
    "/a%0ab",
    "/a%zz",
    "/a%ff",
    "/a#b",
    "/a b",
    "a/b",
    "*",
    "http://api.test/a",
    "/a?x=1&x=2",
    "/a?x=1&%78=2",
    "/a?x=%zz",
    "/a?$httpMethod=DELETE",
    "/a?%24httpHeaders=X-HTTP-Method-Override%3A+DELETE",
    "/a?_method=delete",
    "/a?x=1;x=2",
  ])("%s is refused", (text) => {
    verifies("beyond.http.strict-path");
    expect(readHttpTarget(text)).toMatchObject({ status: 400 });
  });

  test("a path is compared after one decoding", () => {
    verifies("beyond.http.strict-path");
    const found = routes({ host: "api.test", method: "GET", path: "/users/{id}" });
    const places = (text: string) => found.fitting(HOST, "GET", target(text)).map((match) => match.places);
    expect(places("/users/a%20b")).toEqual([{ id: "a b" }]);
    expect(places("/%75sers/a%2Bb+c")).toEqual([{ id: "a+b+c" }]);
    expect(places("/users/%2541")).toEqual([{ id: "%41" }]);
    expect(places("/Users/a")).toEqual([]);
    expect(places("/users/")).toEqual([]);
    expect(places("/users/a/")).toEqual([]);
    expect(found.fitting(HOST, "POST", target("/users/a"))).toEqual([]);
    expect(found.fitting({ ...HOST, port: 8443 }, "GET", target("/users/a"))).toEqual([]);
    expect(found.fitting({ ...HOST, scheme: "http" }, "GET", target("/users/a"))).toEqual([]);
  });

  test.each([
    [["X-HTTP-Method-Override", "DELETE"]],
    [["x-method-override", "DELETE"]],
    [["X-Original-URL", "/admin"]],
    [["x_rewrite_url", "/admin"]],
    [["Connection", "close, Content-Type"]],
    [["Content-Length", "1", "Transfer-Encoding", "chunked"]],
    [["Host", "a", "host", "b"]],
    [["Content-Length", "1", "content-length", "2"]],
    [["Content-Type", "a", "Content-Type", "b"]],
  ])("%j is refused", (raw) => {
    verifies("beyond.http.strict-headers");
    expect(headerProblem(raw)).toMatchObject({ status: 400 });
  });
});

describe("arguments", () => {
  const found = routes({ host: "api.test", method: "POST", path: "/users/{id}" });
  const args = (text: string, body: RequestBody, from = found) => {
    const read = target(text);
    return requestArgs(from.fitting(HOST, "POST", read)[0]!, read, body);
  };

  test("come from path, query and body", () => {
    verifies("beyond.http.args");
    expect(args("/users/7?x=1&y=a+b", bodyOf("application/json", '{"n":1,"o":{"p":[true]}}'))).toEqual({
      args: { id: "7", x: "1", y: "a b", n: 1, o: { p: [true] } },
    });
    expect(args("/users/7", bodyOf("application/x-www-form-urlencoded", "a=1&b=%C3%A9+f"))).toEqual({
      args: { id: "7", a: "1", b: "é f" },
    });
    expect(args("/users/7", bodyOf("application/vnd.api+json; charset=utf-8", "[1]"))).toEqual({
      args: { id: "7", body: [1] },
    });
    expect(args("/users/7", bodyOf(undefined, ""))).toEqual({ args: { id: "7" } });
  });

  test("a name in two of them, or twice in one, is refused", () => {
    verifies("beyond.http.args");
    for (const [text, body] of [
      ["/users/7?id=8", bodyOf(undefined, "")],
      ["/users/7?x=8", bodyOf("application/json", '{"x":1}')],
      ["/users/7", bodyOf("application/json", '{"id":1}')],
      ["/users/7", bodyOf("application/json", '{"x":1,"x":2}')],
      ["/users/7", bodyOf("application/json", '{"__proto__":1}')],
      ["/users/7", bodyOf("application/x-www-form-urlencoded", "a=1&a=2")],
      ["/users/7", bodyOf("application/json", "{")],
      ["/users/7?x=1", bodyOf("application/x-www-form-urlencoded", "x[]=2")],
      ["/users/7", bodyOf("application/x-www-form-urlencoded", "x%5B0%5D=2&x=1")],
    ] as const)
      expect(args(text, body)).toMatchObject({ status: 400 });
  });

  test("other content is refused, unless the manifest takes it unread", () => {
    verifies("beyond.http.content-types");
    expect(args("/users/7", bodyOf("text/plain", "x"))).toMatchObject({ status: 415 });
    expect(args("/users/7", bodyOf(undefined, "x"))).toMatchObject({ status: 415 });
    expect(args("/users/7", bodyOf("multipart/form-data; boundary=x", "x"))).toMatchObject({ status: 415 });
    for (const charset of ["utf-7", '"UTF-16"', "ibm037", "utf-8; charset=utf-7", "utf-7''x"])
      expect(args("/users/7", bodyOf(`application/json; charset=${charset}`, "{}"))).toMatchObject({
        status: 415,
      });
    for (const charset of ["UTF-8", '"utf8"', "us-ascii"])
      expect(args("/users/7", bodyOf(`application/json;charset=${charset}`, "{}"))).toHaveProperty("args");
    const only = routes({ host: "api.test", method: "POST", path: "/users/{id}", body: "form" });
    expect(args("/users/7", bodyOf("application/json", "{}"), only)).toMatchObject({ status: 415 });
    const opaque = routes({ host: "api.test", method: "POST", path: "/users/{id}", body: "opaque" });
    expect(args("/users/7", bodyOf("text/plain", "xyz"), opaque)).toEqual({
      args: { id: "7", body: { bytes: 3, sha256: "h" } },
    });
  });
});

describe("built requests", () => {
  const built = (http: object, args: object) => buildRequest(routes(http).ofTool("t0")!, args as never);
  const to = (method: string, more = {}) => ({ host: "api.test:8443", method, path: "/users/{id}", ...more });

  test("fill the path, then the query or the body", () => {
    expect(built(to("GET"), { id: "a b/c".replace("/", "-"), full: true })).toMatchObject({
      method: "GET",
      origin: { scheme: "https", host: "api.test", port: 8443 },
      target: "/users/a%20b-c?full=true",
      body: undefined,
    });
    expect(built(to("PUT"), { id: 7, name: "x" })).toMatchObject({
      target: "/users/7",
      body: '{"name":"x"}',
    });
    expect(built(to("PUT"), { id: 7, body: [1] })).toMatchObject({ body: "[1]" });
    expect(built(to("PUT"), { id: 7, body: { a: 1 } })).toMatchObject({ body: '{"a":1}' });
    expect(built(to("PUT"), { id: 7, body: "text" })).toMatchObject({ body: '{"body":"text"}' });
    expect(built(to("POST", { body: "form" }), { id: 7, a: "b c" })).toMatchObject({ body: "a=b+c" });
    expect(built(to("DELETE"), { id: "x" })).toMatchObject({ target: "/users/x", body: undefined });
  });

  test("a value that would change the path is refused", () => {
    for (const id of ["a/b", "..", ".", "", "a\\b", "a\nb", null, { a: 1 }])
      expect(built(to("GET"), { id })).toHaveProperty("problem");
    expect(built(to("GET"), {})).toHaveProperty("problem");
    expect(built(to("GET"), { id: 1, list: [1] })).toHaveProperty("problem");
    expect(built(to("POST", { body: "opaque" }), { id: 1, x: 1 })).toHaveProperty("problem");
  });

  test("a filled path is read back as the same value", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "binary" }), (id) => {
        const path = fillPath(pattern("/users/{id}"), { id });
        if (path === undefined || !id.isWellFormed()) return;
        const read = readHttpTarget(path);
        if (!isHttpProblem(read)) expect(matchPath(pattern("/users/{id}"), read.segments)).toEqual({ id });
      }),
    );
  });
});

test("hosts with and without a port", () => {
  expect(splitHost("API.test:8443")).toEqual({ name: "api.test", port: 8443 });
  expect(splitHost("[::1]:80")).toEqual({ name: "::1", port: 80 });
  expect(splitHost("a:b:c")).toEqual({ name: "", port: undefined });
});

describe("a last place for the rest of a path", () => {
  const bucket = { host: "api.test", method: "GET", path: "/{bucket}" };
  const key = { host: "api.test", method: "GET", path: "/{bucket}/{key:path}" };

  test("takes one segment or more, and a request is built with them", () => {
    verifies("beyond.services.rest");
    const found = routes(bucket, key);
    const places = (text: string) => found.fitting(HOST, "GET", target(text)).map((match) => match.places);
    expect(places("/b")).toEqual([{ bucket: "b" }]);
    expect(places("/b/a")).toEqual([{ bucket: "b", key: "a" }]);
    expect(places("/b/a/c%20d/e.txt")).toEqual([{ bucket: "b", key: "a/c d/e.txt" }]);
    expect(places("/b/folder/")).toEqual([{ bucket: "b", key: "folder/" }]);
    expect(places("/b/")).toEqual([]);
    for (const name of ["a", "a/c d/é.txt", "folder/", "a+b=c&d"]) {
      const built = buildRequest(found.ofTool("t1")!, { bucket: "b", key: name }) as { target: string };
      expect(places(built.target)).toEqual([{ bucket: "b", key: name }]);
    }
    for (const name of ["", "/a", "a//b", "../c", "a/../../c", "a/./b", "a\\b", "a\nb", "//"])
      expect(buildRequest(found.ofTool("t1")!, { bucket: "b", key: name })).toHaveProperty("problem");
  });

  test("is whole and last, and a request that also fits another is found", () => {
    verifies("beyond.services.rest", "beyond.http.one-fit");
    for (const path of ["/{a:path}/b", "/x{a:path}", "/{a:path}{b}", "/{a}/{a:path}"])
      expect(parsePathPattern(path)).toHaveProperty("problem");
    const piece = fc.constantFrom("a", "b", "{x}", "ab");
    const rest = fc.constantFrom("", "/{rest:path}");
    const pattern_text = fc
      .tuple(fc.uniqueArray(piece, { minLength: 1, maxLength: 3 }), rest)
      .map(([pieces, end]) => `/${pieces.join("/")}${end}`);
    const path = fc.array(fc.constantFrom("a", "b", "ab", "c"), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(pattern_text, pattern_text, path, (a, b, segments) => {
        const [one, two] = [pattern(a), pattern(b)];
        if (matchPath(one, segments) && matchPath(two, segments)) expect(canBothFit(one, two)).toBe(true);
      }),
    );
    expect(canBothFit(pattern("/{a}"), pattern("/{a}/{b:path}"))).toBe(false);
  });
});

describe("http.query", () => {
  test("a request with another field fits no manifest, and none is built", () => {
    verifies("beyond.services.query");
    const found = routes({ host: "api.test", method: "DELETE", path: "/{bucket}", query: ["version"] });
    const fits = (text: string) => found.fitting(HOST, "DELETE", target(text)).length;
    expect([fits("/b"), fits("/b?version=1"), fits("/b?policy"), fits("/b?version=1&acl")]).toEqual([
      1, 1, 0, 0,
    ]);
    expect(buildRequest(found.ofTool("t0")!, { bucket: "b", version: 1 })).toMatchObject({
      target: "/b?version=1",
    });
    expect(buildRequest(found.ofTool("t0")!, { bucket: "b", policy: "" })).toHaveProperty("problem");
  });
});

describe("digits", () => {
  test("a place of digits shares its segment with other names", () => {
    verifies("beyond.services.digits");
    const [comment, lock] = [pattern("/issues/comments/{id:digits}"), pattern("/issues/{n:digits}/lock")];
    expect(canBothFit(comment, lock)).toBe(false);
    expect(canBothFit(comment, pattern("/issues/{n}/7"))).toBe(true);
    expect(canBothFit(lock, pattern("/issues/1{rest}/lock"))).toBe(true);
    expect(canBothFit(lock, pattern("/issues/x{rest}/lock"))).toBe(false);
    expect(matchPath(lock, ["issues", "12", "lock"])).toEqual({ n: "12" });
    for (const other of ["comments", "1a", "-1", "１"])
      expect(matchPath(lock, ["issues", other, "lock"])).toBeUndefined();
    expect(fillPath(lock, { n: 12 })).toBe("/issues/12/lock");
    expect(fillPath(lock, { n: "x" })).toBeUndefined();
    expect(parsePathPattern("/a/{n:letters}")).toHaveProperty("problem");
  });

  test("a form unsets with an empty field, and a DELETE has a body if its manifest names one", () => {
    verifies("beyond.services.form");
    const [form, bare, json] = [
      { method: "POST", body: "form" },
      { method: "DELETE" },
      { method: "DELETE", body: "json" },
    ].map((more) => routes({ host: "api.test", path: "/a/{id}", ...more }).ofTool("t0")!);
    expect(buildRequest(form!, { id: 1, name: null })).toMatchObject({ target: "/a/1", body: "name=" });
    expect(buildRequest(bare!, { id: 1, sha: "s" })).toMatchObject({ target: "/a/1?sha=s", body: undefined });
    expect(buildRequest(bare!, { id: 1, sha: null })).toHaveProperty("problem");
    expect(buildRequest(json!, { id: 1, sha: "s" })).toMatchObject({ target: "/a/1", body: '{"sha":"s"}' });
  });
});
