import { describe, expect, test } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { valueHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { manifestProblems, readManifestEntry, readManifests } from "./load.ts";

const FULL = `
- tool: crm.create_contact
  version: "1.2.0"
  lifecycle: approved
  effect: compensable
  permission: crm.write
  owner: sales-ops
  requires: [crm.open_session]
  idempotency: $args.email
  risk: {data_class: pii, blast_radius: single, reviewed: true}
  compensation:
    tool: crm.delete_contact
    args: {id: $result.id, list: ["$args.list[0]", "$5"], why: undo}
    kind: inverse
    residue: ["a welcome mail was sent"]
    requires_approval: true
  verification:
    tool: crm.get_contact
    args: {id: $result.id}
    expect: {deleted: true}
    retries: 5
    backoff_ms: 100
  audit: {redaction: [$args.email, '$result["full name"]'], retention_days: 90, evidence_export: required}
`;

/** A valid entry with some lines replaced. */
function entry(lines: Record<string, string | null> = {}): string {
  const all: Record<string, string | null> = { tool: "t", effect: "idempotent", permission: "p", ...lines };
  const body = Object.entries(all)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${value}`);
  return `- ${body.join("\n  ")}\n`;
}

const read = (text: string) => readManifests([{ file: "m.yaml", text }]);
const problems = (text: string) => manifestProblems(text, "m.yaml");

describe("a manifest as the engine reads it", () => {
  test("every field, as written", () => {
    verifies(
      "core.manifest.yaml-list",
      "core.manifest.compensation-tool",
      "core.manifest.residue",
      "core.manifest.kind",
      "core.manifest.requires-approval",
      "core.manifest.verification",
      "core.manifest.risk-data-class",
      "core.manifest.risk-blast-radius",
      "core.manifest.owner",
      "core.manifest.audit-redaction",
      "core.manifest.audit-retention-days",
      "core.manifest.audit-evidence-export",
      "core.manifest.version",
      "contract.manifest.compensation-fields",
    );
    expect(read(FULL).all[0]).toEqual({
      tool: "crm.create_contact",
      version: "1.2.0",
      lifecycle: "approved",
      effect: "compensable",
      permission: "crm.write",
      owner: "sales-ops",
      requires: ["crm.open_session"],
      idempotency: ["$args.email"],
      risk: { data_class: "pii", blast_radius: "single", reviewed: true },
      compensation: {
        tool: "crm.delete_contact",
        args: { id: "$result.id", list: ["$args.list[0]", "$5"], why: "undo" },
        kind: "inverse",
        residue: ["a welcome mail was sent"],
        requires_approval: true,
      },
      verification: {
        tool: "crm.get_contact",
        args: { id: "$result.id" },
        expect: { deleted: true },
        retries: 5,
        backoff_ms: 100,
      },
      audit: {
        redaction: ["$args.email", '$result["full name"]'],
        retention_days: 90,
        evidence_export: "required",
      },
    });
  });

  test("every default filled in", () => {
    verifies("contract.manifest.version-default", "contract.manifest.lifecycle-default");
    const text = `${entry()}- {tool: u, effect: compensable, permission: p, compensation: {tool: undo}, verification: {tool: look, expect: null}}\n`;
    const [plain, undoable] = read(text).all;
    expect(plain).toEqual({
      tool: "t",
      version: "1",
      lifecycle: "approved",
      effect: "idempotent",
      permission: "p",
      owner: null,
      requires: [],
      idempotency: [],
      risk: { data_class: null, blast_radius: null },
      compensation: null,
      verification: null,
      audit: { redaction: [], retention_days: null, evidence_export: null },
    });
    expect(undoable?.compensation).toEqual({
      tool: "undo",
      args: {},
      kind: "compensation",
      residue: [],
      requires_approval: false,
    });
    expect(undoable?.verification).toEqual({
      tool: "look",
      args: {},
      expect: null,
      retries: 3,
      backoff_ms: 200,
    });
  });

  test("read_only is another word for read, whole numbers are versions, lists of paths are kept", () => {
    verifies(
      "contract.effect.read-only",
      "contract.manifest.version-value",
      "contract.manifest.idempotency-path",
    );
    const text = entry({ effect: "read_only", version: "3", idempotency: "[$args.a, $args.b]" });
    expect(read(text).all[0]).toMatchObject({
      effect: "read",
      version: "3",
      idempotency: ["$args.a", "$args.b"],
    });
  });

  test("all five effects, with an undo where one is needed", () => {
    verifies("contract.effect.values", "core.manifest.effect-known");
    const undo = { compensation: "{tool: undo}" };
    const effects = ["read", "idempotent", "irreversible"].map((effect) => entry({ tool: effect, effect }));
    effects.push(...["reversible", "compensable"].map((effect) => entry({ tool: effect, effect, ...undo })));
    expect(read(effects.join("")).all.map(({ effect }) => effect)).toEqual([
      "read",
      "idempotent",
      "irreversible",
      "reversible",
      "compensable",
    ]);
  });

  test("a normalised manifest is itself a valid entry, and means the same", () => {
    for (const text of [FULL, entry(), entry({ effect: "read_only" })]) {
      const manifest = read(text).all[0]!;
      expect(readManifestEntry(JSON.parse(JSON.stringify(manifest)))).toEqual(manifest);
    }
  });

  test("the hash is that of the normalised manifest: two spellings, one address", () => {
    const set = read(FULL);
    expect(set.hashOf(set.all[0]!)).toBe(valueHash(set.all[0] as unknown as JsonValue));
    expect(set.hashOf(set.all[0]!)).toBe(
      "sha256:6a0baef75f39b285ceaed6377007b10fe9fdbe8e75bc1abd1896635700fc711f",
    );
    const a = read(entry({ effect: "read" }));
    const b = read(entry({ effect: "read_only", version: '"1"', lifecycle: "approved" }));
    expect(a.hashOf(a.all[0]!)).toBe(b.hashOf(b.all[0]!));
  });

  test("permissions are listed once, sorted; the position of an entry is known", () => {
    const set = read(
      entry({ permission: "z" }) +
        entry({ tool: "u", permission: "a" }) +
        entry({ tool: "v", permission: "a" }),
    );
    expect(set.permissions).toEqual(["a", "z"]);
    expect(set.sourceOf(set.all[1]!)).toEqual({ file: "m.yaml", line: 4 });
  });
});

describe("which version is active", () => {
  const versions = (...list: [version: string, lifecycle: string][]) =>
    read(list.map(([version, lifecycle]) => entry({ version: `"${version}"`, lifecycle })).join("")).active(
      "t",
    )?.version;

  test.each([
    [
      [
        ["1.9", "approved"],
        ["1.10", "approved"],
        ["1.2", "approved"],
      ],
      "1.10",
    ],
    [
      [
        ["1.0", "approved"],
        ["2.0", "draft"],
        ["3.0", "deprecated"],
      ],
      "1.0",
    ],
    [
      [
        ["1.0", "deprecated"],
        ["0.9", "deprecated"],
        ["2.0", "draft"],
      ],
      "1.0",
    ],
    [
      [
        ["1.0", "draft"],
        ["1.1", "draft"],
      ],
      "1.1",
    ],
    [
      [
        ["1.0-a", "approved"],
        ["1.0-b", "approved"],
      ],
      "1.0-b",
    ],
  ] as [[string, string][], string][])("%j gives %s", (list, wanted) => {
    verifies("contract.manifest.newest-approved", "core.manifest.lifecycle");
    expect(versions(...list)).toBe(wanted);
    expect(versions(...[...list].reverse())).toBe(wanted);
  });

  test("an unknown tool has none, names of Object's own included", () => {
    expect(read(entry()).active("nope")).toBeUndefined();
    expect(read(entry()).active("constructor")).toBeUndefined();
    expect(read(entry({ tool: "constructor" })).active("constructor")?.tool).toBe("constructor");
  });
});

test("a ring of prerequisites does not load, and each of its entries says where", () => {
  const ring = (first: string, second: string) =>
    entry({ requires: first }) +
    entry({ tool: "u", requires: second }) +
    entry({ tool: "v", requires: "[t]" });
  const told = (line: number, tool: string) =>
    `m.yaml:${line}: tool ${tool}: requires: the prerequisites form a cycle, so the tool can never run; remove one of them`;
  expect(problems(ring("[u]", "[t]"))).toEqual([told(4, "t"), told(8, "u"), told(12, "v")]);
  expect(problems(ring("[u]", "[]"))).toEqual([]);
  // Only the version in force counts.
  const older = `${entry({ requires: "[u]", version: '"1"' })}${entry({ version: '"2"' })}`;
  expect(problems(`${older}${entry({ tool: "u", requires: "[t]" })}`)).toEqual([]);
});

describe("warnings", () => {
  test("a prerequisite nobody declares", () => {
    expect(read(entry({ requires: "[ghost]" })).warnings).toEqual([
      "m.yaml:1: tool t: requires: ghost has no manifest, so it can never have run",
    ]);
    expect(read(FULL.replace("crm.open_session", "crm.get")).warnings).toHaveLength(1);
  });
});
