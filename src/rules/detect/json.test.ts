import { describe, expect, it } from "vitest";
import { mapStrings, redactJson, scanJson } from "./json.ts";
import { findPii } from "./pii.ts";
import { findSecrets } from "./secrets.ts";

const TOKEN = ["ghp", "_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lMx"].join("");

describe("scanJson", () => {
  it("says where a value was found", () => {
    const value = { headers: { authorization: `token ${TOKEN}` }, list: ["x", TOKEN] };
    expect(scanJson(value, findSecrets).map(({ kind, path }) => [kind, path])).toEqual([
      ["github_token", "$args.headers.authorization"],
      ["github_token", "$args.list[1]"],
    ]);
  });

  it("uses the name of a field as a hint for its value", () => {
    expect(scanJson({ password: "hunter2000" }, findSecrets)).toMatchObject([
      { kind: "password", path: "$args.password" },
    ]);
    expect(scanJson({ passwords: ["x"], note: "hunter2000" }, findSecrets)).toEqual([]);
  });

  it("finds a secret that is itself a name, and does not repeat it in the path", () => {
    const hits = scanJson({ [TOKEN]: { a: "alice@example.com" } }, findSecrets);
    expect(hits).toMatchObject([{ kind: "github_token", path: "$args[*]", in_key: true }]);
    const mail = scanJson({ "bob@example.com": { to: "alice@example.com" } }, findPii);
    expect(mail.map(({ path, in_key }) => [path, in_key])).toEqual([
      ["$args[*]", true],
      ["$args[*].to", false],
    ]);
  });

  it("looks at numbers that could be card numbers", () => {
    expect(scanJson({ pan: 4111111111111111 }, findPii)).toMatchObject([{ kind: "card", path: "$args.pan" }]);
    expect(scanJson({ amount: 500 }, findPii)).toEqual([]);
  });

  it("stops at the number of hits asked for", () => {
    const many = Array.from({ length: 50 }, () => TOKEN);
    expect(scanJson(many, findSecrets, "$args", 7)).toHaveLength(7);
  });
});

describe("redactJson", () => {
  it("replaces credentials and, when asked, personal data", () => {
    const value = {
      password: "hunter2000",
      to: "alice@example.com",
      n: 4111111111111111,
      ok: true,
      none: null,
    };
    expect(redactJson(value, { pii: true })).toEqual({
      password: "[REDACTED:password]",
      to: "[PII:email]",
      n: "[PII:card]",
      ok: true,
      none: null,
    });
    expect(redactJson(value, { pii: false })).toMatchObject({ to: "alice@example.com", n: 4111111111111111 });
  });

  it("keeps both entries when two names become the same", () => {
    const value = { "a@example.com": 1, "b@example.com": 2 };
    expect(redactJson(value, { pii: true })).toEqual({ "[PII:email]": 1, "[PII:email]#2": 2 });
  });

  it("passes the name of the field that holds a list to its items", () => {
    const seen: (string | undefined)[] = [];
    mapStrings({ a: ["x", { b: "y" }] }, (text, key) => {
      if (text === "x" || text === "y") seen.push(key);
      return text;
    });
    expect(seen).toEqual(["a", "b"]);
  });
});
