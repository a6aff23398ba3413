/** GraphQL requests: the tool and the arguments of each, and refusals. */
import { describe, expect, test } from "vitest";
import { verifies } from "../../../../test/support/verifies.ts";
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import { manifestProblems, readManifestEntry } from "../../manifest/load.ts";
import { manifestSet } from "../../manifest/set.ts";
import { answerOutcome } from "../answer-outcome.ts";
import { buildRequest, graphqlMatch, HttpRoutes } from "../routes.ts";
import { isHttpProblem, readHttpTarget } from "../target.ts";
import { parseGraphql } from "./document.ts";

const DOCUMENTS: Record<string, string> = {
  update:
    "mutation($id: String!, $input: In!) { issueUpdate(id: $id, input: $input) { success issue { id } } }",
  get: "query($id: String!) { issue(id: $id) { id } }",
  anything: "query",
  change: "mutation",
};
const entry = (tool: string, graphql: string) =>
  readManifestEntry({
    tool,
    effect: "read",
    permission: "p",
    http: { host: "api.test", method: "POST", path: "/graphql", graphql },
  } as never);
const routes = new HttpRoutes(
  manifestSet(Object.entries(DOCUMENTS).map(([tool, text]) => entry(tool, text))),
);
const ORIGIN = { scheme: "https", host: "api.test", port: 443 } as const;

function send(body: JsonValue | string, { type = "application/json", path = "/graphql" } = {}) {
  const content = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const target = readHttpTarget(path);
  if (isHttpProblem(target)) throw new Error(target.problem);
  const read = { type, content, bytes: content.length, sha256: "h" };
  const match = graphqlMatch(routes.fitting(ORIGIN, "POST", target), target, read);
  if (match === undefined) return "none";
  return "problem" in match ? match.status : [match.route.tool, match.args];
}
const tool = (query: string, variables: JsonObject = {}) => {
  const found = send({ query, variables });
  return Array.isArray(found) ? found[0] : found;
};
const ASKED = "{ success issue { id title } }";

describe("a request", () => {
  test.each<[string, JsonObject, JsonObject]>([
    [
      `mutation { issueUpdate(id: "a", input: {title: "x", n: [1, 2.5, -3], on: true, kind: BUG, none: null}) ${ASKED} }`,
      {},
      { id: "a", input: { title: "x", n: [1, 2.5, -3], on: true, kind: "BUG", none: null } },
    ],
    [
      `mutation M($i: String!, $t: String = "d", $u: Int) { issueUpdate(id: $i, input: {title: $t, n: $u}) ${ASKED} }`,
      { i: "a" },
      { id: "a", input: { title: "d" } },
    ],
    [
      `mutation M($in: In!) { issueUpdate(input: $in, id: "\\u0041\\n") ${ASKED} }`,
      { in: { title: "x" } },
      { id: "A\n", input: { title: "x" } },
    ],
    [
      `# note\nfragment F on P { success, issue { ...G } } fragment G on Issue { id } mutation { issueUpdate(id: "a") { ...F } }`,
      {},
      { id: "a" },
    ],
  ])("fits the tool of its field: %s", (query, variables, args) => {
    verifies("beyond.services.graphql");
    expect(send({ query, variables, operationName: query.includes("M(") ? "M" : null })).toEqual([
      "update",
      args,
    ]);
  });

  test.each([
    ["a second field", `mutation { issueUpdate(id: "a") ${ASKED} issueDelete(id: "b") { success } }`],
    ["the same field twice", `mutation { issueUpdate(id: "a") ${ASKED} b: issueUpdate(id: "b") ${ASKED} }`],
    ["an alias", `mutation { issueDelete: issueUpdate(id: "a") ${ASKED} }`],
    ["a directive that skips it", `mutation { issueUpdate(id: "a") @skip(if: true) ${ASKED} }`],
    ["a directive on the operation", `mutation @x { issueUpdate(id: "a") ${ASKED} }`],
    ["a fragment at the root", `mutation { ...F } fragment F on Mutation { issueUpdate(id: "a") ${ASKED} }`],
    [
      "an argument that the tool does not know",
      `mutation { issueUpdate(id: "a", permanently: true) ${ASKED} }`,
    ],
    ["no word of success", `mutation { issueUpdate(id: "a") { issue { id } } }`],
    ["no id for the undo", `mutation { issueUpdate(id: "a") { success issue { title } } }`],
    ["another field under the name", `mutation { issueUpdate(id: "a") { success: other issue { id } } }`],
    [
      "a field that is left out",
      `mutation { issueUpdate(id: "a") { success @include(if: false) issue { id } } }`,
    ],
    ["another field", `mutation { issueDelete(id: "a") { success } }`],
  ])("with %s fits only the tool for any change", (_, query) => {
    verifies("beyond.services.graphql");
    expect(tool(query)).toBe("change");
  });

  test("that only reads fits the tool of its field, or the one for any query", () => {
    verifies("beyond.services.graphql");
    expect(tool('{ issue(id: "a") { id title } }')).toBe("get");
    expect(tool("query Q { viewer { id } teams { nodes { id } } }")).toBe("anything");
    expect(send({ query: "{ viewer { id } }" })).toEqual(["anything", { query: "{ viewer { id } }" }]);
  });

  const good = { query: "{ viewer { id } }" };
  test.each<[string, JsonValue | string, number, object?]>([
    ["a list of requests", [good, good], 400],
    ["no query", { variables: {} }, 400],
    ["the hash of a stored query", { ...good, extensions: { persistedQuery: { sha256Hash: "h" } } }, 400],
    ["a member given twice", `{"query": "{ viewer { id } }", "query": "mutation { d }"}`, 400],
    ["another query in the address", good, 400, { path: "/graphql?query=mutation" }],
    ["a form", "query=x", 415, { type: "application/x-www-form-urlencoded" }],
    ["plain GraphQL", "{ viewer }", 415, { type: "application/graphql" }],
    ["two operations", { query: "query A { a } mutation B { b }", operationName: "A" }, 400],
    ["the name of another operation", { query: "query A { a }", operationName: "B" }, 400],
    ["a subscription", { query: "subscription { a }" }, 400],
    ["no operation", { query: "fragment F on A { a }" }, 400],
    ["a block string", { query: 'mutation { a(b: """x""") }' }, 400],
    ["an argument given twice", { query: "mutation { a(b: 1, b: 2) }" }, 400],
    ["a variable that it does not declare", { query: "mutation { a(b: $c) }", variables: { c: 1 } }, 400],
    ["a number that is too large", { query: "mutation { a(b: 90071992547409921) }" }, 400],
    ["an open bracket", { query: "mutation { a(b: [1) }" }, 400],
    ["text outside the grammar", { query: "{ a } ;" }, 400],
    ["deep nesting", { query: `${"{a".repeat(100)}${"}".repeat(100)}` }, 400],
  ])("with %s is refused", (_, body, status, how) => {
    verifies("beyond.services.graphql");
    expect(send(body, how)).toBe(status);
  });

  test("with fragments of fragments is read in a moment", () => {
    verifies("beyond.services.graphql");
    const names = Array.from({ length: 60 }, (_, i) => `F${i}`);
    const spreads = names.map((name) => `...${name} `.repeat(30)).join("");
    const fragments = names.map((name) => `fragment ${name} on A { ${spreads} }`).join("\n");
    expect(tool(`mutation { issueUpdate(id: "a") { ...F0 } } ${fragments}`)).toBe("change");
  });
});

test("a request is built from the document of the manifest", () => {
  verifies("beyond.services.graphql");
  const built = buildRequest(routes.ofTool("get")!, { id: "a" });
  expect(built).toMatchObject({ method: "POST", target: "/graphql" });
  expect(JSON.parse((built as { body: string }).body)).toEqual({
    query: DOCUMENTS["get"],
    variables: { id: "a" },
  });
  expect(buildRequest(routes.ofTool("get")!, { id: "a", x: 1 })).toHaveProperty("problem");
  expect(buildRequest(routes.ofTool("change")!, { id: "a" })).toHaveProperty("problem");
});

test("manifests of one field twice, and documents that name no one field, do not load", () => {
  verifies("beyond.services.graphql", "beyond.http.one-fit");
  const load = (...texts: string[]) =>
    manifestProblems(
      JSON.stringify(
        texts.map((graphql, i) => ({
          tool: `t${i}`,
          effect: "read",
          permission: "p",
          http: { host: "api.test", method: "POST", path: "/g", graphql },
        })),
      ),
      "m.yaml",
    );
  expect(load(...Object.values(DOCUMENTS))).toEqual([]);
  expect(load("query", "query").join()).toContain("fits the same requests");
  expect(load("{ a { id } }", "{ a { name } }").join()).toContain("fits the same requests");
  for (const text of [
    "{ a b }",
    "{ x: a }",
    "{ ...F } fragment F on A { a }",
    "query($i: Int) { a(id: $i) }",
    "query($i: Int) { a }",
    "{ a(id: 1) }",
    "subscription { a }",
    "{",
  ])
    expect(load(text).join(), text).toContain("http.graphql");
});

test.each<[JsonObject, string]>([
  [{ data: { issueUpdate: { success: true } } }, "succeeded"],
  [{ data: { issueUpdate: { success: true } }, errors: [{ message: "a part" }] }, "succeeded"],
  [{ data: { issueUpdate: { success: false } } }, "failed"],
  [{ errors: [{ message: "no such field" }] }, "failed"],
  [{ data: null, errors: [{ message: "in the middle" }] }, "uncertain"],
  [{ data: { issueUpdate: null }, errors: [{ message: "in the middle" }] }, "uncertain"],
])("an answer of 200 with %j is %s", (body, status) => {
  verifies("beyond.services.graphql-errors");
  const { http } = entry("t", DOCUMENTS["update"]!);
  const failed = { body: { data: { issueUpdate: { success: false } } } };
  expect(answerOutcome({ status: 200, body }, { ...http!, failed }).status).toBe(status);
  expect(answerOutcome({ status: 500, body }, { ...http!, failed }).status).toBe("uncertain");
});

test("every prefix of a document is read or refused", () => {
  verifies("beyond.services.graphql");
  const text = `query Q($a: [Int!]! = [1] @d) @e(f: "g") { x: y(z: {k: $a}) { ...F ... on T @s { u } ... { v } } } fragment F on T { w }`;
  for (let end = 0; end < text.length; end++)
    try {
      parseGraphql(text.slice(0, end));
    } catch (error) {
      expect((error as Error).constructor.name).toBe("GraphqlError");
    }
  expect(parseGraphql(text).operations).toHaveLength(1);
});
