import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { ProblemsError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { canRequestAndApprove } from "./key-entry.ts";
import { parseKeys, parseKeysInSlices } from "./key-list.ts";
import { fingerprintOf, KeyRing } from "./keys.ts";

const HASH = sha256Hex("secret");
const good = { name: "ann", role: "admin", key_sha256: HASH };
const parse = (...entries: unknown[]) => parseKeys(JSON.stringify(entries), "keys.json").entries;
const problems = (text: string): readonly string[] => {
  try {
    parseKeys(text, "keys.json");
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
  return [];
};

describe("reading the file", () => {
  test.each(["role", "roles"])("%s takes one role or a list", (field) => {
    const { role: _, ...rest } = good;
    for (const value of ["auditor", ["auditor"]]) {
      expect(parse({ ...rest, [field]: value })[0]).toMatchObject({ roles: ["auditor"] });
    }
    for (const value of [[], 7, {}]) expect(() => parse({ ...rest, [field]: value })).toThrow(/roles: /);
  });

  test("role or roles, defaults, and every field", () => {
    verifies(
      "core.key.role-string",
      "core.key.roles-list",
      "core.key.groups-optional",
      "core.key.tenant-optional",
      "core.key.not-before-optional",
    );
    expect(parse(good)).toEqual([
      {
        name: "ann",
        roles: ["admin"],
        key_sha256: HASH,
        max_permissions: [],
        groups: [],
        tenant: null,
        tenant_only: false,
        not_before: null,
        expires_at: null,
        disabled: false,
        allow_observe: false,
        self_rollback: false,
        may_give: false,
        may_sandbox: false,
      },
    ]);
    const whole = {
      name: "bot 7",
      roles: ["agent", "approver", "agent"],
      key_sha256: HASH,
      max_permissions: ["crm.*", "{a,b}"],
      groups: ["finance"],
      tenant: "acme",
      tenant_only: true,
      not_before: "2026-01-01",
      expires_at: "2027-01-01T00:00:00+02:00",
      disabled: true,
      allow_observe: true,
      self_rollback: true,
      may_give: false,
      may_sandbox: false,
    };
    expect(parse(whole)).toEqual([{ ...whole, roles: ["agent", "approver"] }]);
    expect(parse({ ...good, tenant: null, groups: null, expires_at: null })[0]).toMatchObject({
      tenant: null,
      groups: [],
      expires_at: null,
    });
  });

  test("an empty list is a list", () => {
    verifies("core.key.file-is-json-list");
    expect(parseKeys(" [ ] \n", "k").entries).toEqual([]);
  });

  test.each([
    "",
    " ",
    "{}",
    "null",
    '"x"',
    "[",
    "[{}",
    "[{]}",
    "[1,]",
    "[,1]",
    "[] []",
    "[]]",
    "not json",
    '[{"name": "a]',
    "\0",
  ])("%j does not parse", (text) => {
    expect(problems(text)).toHaveLength(1);
    expect(problems(text)[0]).toMatch(/^keys\.json: /);
  });

  const bad: [string, object, RegExp][] = [
    ["no name", { name: undefined }, /name: is missing/],
    ["a name with a control character", { name: "a\nb" }, /name: must not contain control characters/],
    ["a name with a space at the end", { name: "ann " }, /name: must not contain/],
    ["a reserved name", { name: "engine" }, /name: is a name of the service itself/],
    ["the probe's name", { name: "svc-probe" }, /name of the service itself/],
    ["the console's name", { name: "local-console" }, /name of the service itself/],
    ["a name too long", { name: "x".repeat(257) }, /name: must have at most 256/],
    ["no role", { role: undefined }, /roles: is missing/],
    ["no roles", { role: undefined, roles: [] }, /roles: is missing/],
    ["an unknown role", { role: "root" }, /roles: must be one of agent, auditor/],
    ["a role in capitals", { role: "Admin" }, /did you mean "admin"/],
    ["role beside roles", { roles: ["agent"] }, /roles: cannot be combined with role/],
    ["uppercase hex", { key_sha256: HASH.toUpperCase() }, /key_sha256: must be .* lowercase hex/],
    ["63 digits", { key_sha256: HASH.slice(1) }, /key_sha256/],
    ["a plain key", { key_sha256: "secret" }, /key_sha256/],
    ["the hash of an empty key", { key_sha256: sha256Hex("") }, /key_sha256: is the hash of an empty key/],
    ["the hash of a bare line end", { key_sha256: sha256Hex("\n") }, /hash of an empty key/],
    ["the hash of the other line end", { key_sha256: sha256Hex("\r\n") }, /hash of an empty key/],
    ["a bad timestamp", { expires_at: "tomorrow" }, /expires_at: must be an ISO 8601/],
    ["a number as timestamp", { expires_at: 1_800_000_000 }, /expires_at/],
    [
      "a validity that ends before it begins",
      { not_before: "2027-01-01", expires_at: "2026-01-01" },
      /never valid/,
    ],
    ["disabled as text", { disabled: "false" }, /disabled: must be true or false/],
    ["permissions as text", { max_permissions: "crm.*" }, /max_permissions: must be a list/],
    ["a broken glob", { max_permissions: ["{a"] }, /max_permissions: glob/],
    ["an empty group", { groups: [""] }, /groups: must be a list/],
    ["a tenant with a control character", { tenant: "a\u0000" }, /tenant/],
    ["a misspelt field", { expires: "2027-01-01" }, /"expires": unknown field/],
    ["another misspelt field", { expire_at: "2027-01-01" }, /did you mean "expires_at"/],
  ];
  test.each(bad)("%s", (_name, change, wanted) => {
    verifies("core.key.role-values", "core.key.sha256-lowercase-hex");
    const found = problems(JSON.stringify([good, { ...good, key_sha256: sha256Hex("other"), ...change }]));
    expect(found.join("\n")).toMatch(wanted);
    expect(found[0]).toMatch(/^keys\.json: entry 1/);
  });

  test("the same hash twice, a duplicate field, every problem at once", () => {
    expect(problems(JSON.stringify([good, { ...good, name: "bob" }]))).toEqual([
      'keys.json: entry 1 ("bob"): key_sha256: is the same as that of entry 0',
    ]);
    expect(problems('[{"name": "a", "name": "b"}]')[0]).toMatch(/entry 0: invalid JSON: duplicate key/);
    expect(problems(JSON.stringify([{ name: "" }, { ...good, role: "x", disabled: 1 }]))).toHaveLength(5);
  });

  test("a problem never holds the hash", () => {
    expect(problems(JSON.stringify([{ ...good, key_sha256: HASH.toUpperCase() }])).join()).not.toContain(
      HASH.toUpperCase(),
    );
  });

  test("reading entry by entry accepts exactly what reading at once accepts", () => {
    const json = fc.json({ maxDepth: 3 });
    const list = fc.array(json, { maxLength: 4 }).map((items) => `[${items.join(",")}]`);
    const mangled = fc
      .tuple(list, fc.nat(40), fc.constantFrom(",", "]", "[", "{", "}", '"', "\\", ""))
      .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at + 1));
    fc.assert(
      fc.property(fc.oneof(list, mangled), (text) => {
        let wanted: unknown;
        try {
          wanted = JSON.parse(text);
        } catch {}
        const told = problems(text).join("\n");
        if (!Array.isArray(wanted)) expect(told).not.toBe("");
        else if (!/__proto__|number|2\^53|surrogate|duplicate|nesting/.test(told))
          expect(told).not.toMatch(/not closed|after the list|invalid JSON/);
      }),
      { numRuns: 500 },
    );
  });
});

test("a key that can ask and approve is marked", () => {
  const roles = (...list: string[]) =>
    canRequestAndApprove(parse({ ...good, role: undefined, roles: list })[0]!);
  expect([
    roles("agent"),
    roles("agent", "auditor"),
    roles("admin"),
    roles("agent", "approver"),
    roles("admin", "agent"),
  ]).toEqual([false, false, false, true, true]);
});

describe("the ring", () => {
  const NOW = Date.UTC(2026, 5, 1);
  const ring = (...entries: unknown[]) => new KeyRing(parse(...entries));

  test("finds a principal whose identity cannot be mistaken for a token's", () => {
    verifies("core.auth.key-by-sha256");
    const found = ring({
      ...good,
      role: undefined,
      roles: ["agent"],
      max_permissions: ["a"],
      tenant: "t",
      groups: ["g"],
      allow_observe: true,
    }).find("secret", NOW);
    expect(found).toEqual({
      key_sha256: HASH,
      expires_ms: null,
      principal: {
        id: "key:ann",
        name: "ann",
        roles: ["agent"],
        groups: ["g"],
        tenant: "t",
        max_permissions: ["a"],
        allow_observe: true,
        credential: fingerprintOf(HASH),
      },
    });
  });

  test("an agent key without max_permissions may request none", () => {
    const found = ring({ ...good, role: "agent" }).find("secret", NOW);
    expect(found).toMatchObject({ principal: { max_permissions: [] } });
  });

  test("unknown, disabled, expired, not yet valid", () => {
    expect(ring(good).find("secret2", NOW)).toBe("unknown");
    expect(ring(good).find(HASH, NOW)).toBe("unknown");
    expect(ring({ ...good, disabled: true }).find("secret", NOW)).toBe("disabled");
    const limited = ring({ ...good, not_before: "2026-01-01T00:00:00Z", expires_at: "2027-01-01T00:00:00Z" });
    expect(limited.find("secret", Date.UTC(2026, 0, 1) - 1)).toBe("not_yet_valid");
    expect(limited.find("secret", Date.UTC(2026, 0, 1))).toMatchObject({ expires_ms: Date.UTC(2027, 0, 1) });
    expect(limited.find("secret", Date.UTC(2027, 0, 1) - 1)).toMatchObject({ principal: { name: "ann" } });
    expect(limited.find("secret", Date.UTC(2027, 0, 1))).toBe("expired");
  });

  test("by name: a usable key of that name, whichever it is", () => {
    const keys = ring(
      { ...good, disabled: true },
      { ...good, key_sha256: sha256Hex("new"), role: "approver" },
    );
    expect(keys.findName("ann", NOW)?.roles).toEqual(["approver"]);
    expect(keys.findName("bob", NOW)).toBeUndefined();
  });
});

test("100,000 entries are read, in slices and at once, to the same ring", async () => {
  const list = Array.from({ length: 100_000 }, (_, i) => ({
    name: `bot-${i}`,
    role: "agent",
    key_sha256: sha256Hex(`k${i}`),
    max_permissions: ["a.*"],
  }));
  const text = JSON.stringify(list);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const { entries } = await parseKeysInSlices(text, "keys.json");
  clearInterval(timer);
  // Others were served during the work. The benchmark measures how fast.
  expect(turns).toBeGreaterThan(0);
  expect(entries).toHaveLength(100_000);
  expect(new KeyRing(entries).find("k99999", 0)).toMatchObject({ principal: { name: "bot-99999" } });
});
