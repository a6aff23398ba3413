import { describe, expect, test } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { checkManifests, errorsByEntry, manifestProblems, readManifestEntry, readManifests } from "./load.ts";

/** A valid entry with some lines replaced. */
function entry(lines: Record<string, string | null> = {}): string {
  const all: Record<string, string | null> = { tool: "t", effect: "idempotent", permission: "p", ...lines };
  const body = Object.entries(all)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${value}`);
  return `- ${body.join("\n  ")}\n`;
}

const problems = (text: string) => manifestProblems(text, "m.yaml");

describe("problems", () => {
  test("are none for a read that may report what changed during it", () => {
    verifies("beyond.record.overlap");
    const undo = { effect: "read", compensation: "{tool: u}" };
    const reading = (more: string) => ({ ...undo, before: `{tool: look, args: {}${more}}` });
    expect(problems(entry(reading(", required: false, parts: true")))).toEqual([]);
    for (const less of ["", ", required: false", ", parts: true"])
      expect(problems(entry(reading(less)))).toEqual([
        expect.stringContaining("only reads has nothing to undo"),
        expect.stringContaining("only reads changes nothing"),
      ]);
  });

  test("name the file, the line, the tool and the field", () => {
    verifies("contract.manifest.error-names", "core.manifest.effect-unknown-refused");
    const text = `${entry()}\n- tool: crm.create\n  effect: Reversible\n  permission: p\n`;
    expect(manifestProblems(text, "manifests/a.yaml")).toEqual([
      'manifests/a.yaml:6: tool crm.create: effect: must be one of read, idempotent, reversible, compensable, irreversible, read_only, not "Reversible"; did you mean "reversible"?',
    ]);
  });

  test("are all listed, over all files", () => {
    verifies("contract.manifest.all-errors");
    const files = [
      { file: "a.yaml", text: entry({ effect: "maybe", permission: null, version: "[]" }) },
      { file: "b.yaml", text: "tool: x" },
      { file: "c.yaml", text: "- tool: [" },
      {
        file: "d.yaml",
        text: entry({ effect: "reversible", lifecycle: "old", verification: "{tool: look}" }),
      },
    ];
    const error = (() => {
      try {
        readManifests(files);
      } catch (e) {
        return e as ProblemsError;
      }
    })();
    expect(error).toBeInstanceOf(ProblemsError);
    const heads = error!.problems.map((p) => p.split(": ").slice(0, 3).join(": "));
    expect(heads).toEqual([
      "a.yaml:1: tool t: permission",
      "a.yaml:2: tool t: effect",
      "a.yaml:3: tool t: version",
      'b.yaml:1: must be a list of entries; begin each with "- tool:"',
      expect.stringMatching(/^c\.yaml:1: not well-formed YAML/),
      "d.yaml:1: tool t: compensation",
      "d.yaml:4: tool t: lifecycle",
      "d.yaml:5: tool t: verification",
      "d.yaml:5: tool t: verification.expect",
    ]);
  });

  test("one line an entry, for svc validate", () => {
    const files = [
      {
        file: "a.yaml",
        text:
          entry() +
          entry({ tool: "u", effect: "maybe", lifecycle: "x" }) +
          entry({ tool: "v", permission: "''" }),
      },
    ];
    expect(errorsByEntry(checkManifests(files))).toEqual([
      expect.stringMatching(/^a\.yaml:5: tool u: effect: must be .*; line 7: lifecycle: must be /),
      expect.stringMatching(/^a\.yaml:10: tool v: permission: /),
    ]);
  });

  const bad: [string, Record<string, string | null>, RegExp][] = [
    ["a missing tool", { tool: null }, /m\.yaml:1: entry 1: tool: is missing/],
    ["a glob", { tool: "'crm.*'" }, /tool: must be the name of one tool, not a glob/],
    ["braces", { tool: '"a{b,c}"' }, /not a glob/],
    ["the service's own names", { tool: "svc.halt" }, /must not begin with "svc\."/],
    ["a space at the end", { tool: '"delete_user "' }, /must not hold spaces/],
    ["a NUL", { tool: '"a\\0b"' }, /must not hold spaces, control/],
    ["a zero-width space", { tool: '"a\\u200bb"' }, /invisible/],
    ["a name too long", { tool: "x".repeat(257) }, /at most 256 characters/],
    ["an empty permission", { permission: '""' }, /permission: must not be empty/],
    ["a permission glob", { permission: '"p.*"' }, /permission: must be one permission/],
    ["a number as permission", { permission: "5" }, /permission: must be text/],
    ["no effect", { effect: null }, /effect: is missing; write one of read, /],
    ["a decimal version", { version: "1.10" }, /version: is read as a decimal number.*quotes/],
    ["an empty version", { version: '""' }, /version: /],
    ["an unknown key", { requires_aproval: "true" }, /requires_aproval: unknown key; known keys are tool, /],
    ["a misspelt key", { permision: "p" }, /permision: unknown key; did you mean "permission"\?/],
    [
      "reversible without undo",
      { effect: "reversible" },
      /compensation: is missing: effect reversible needs/,
    ],
    ["compensable without undo", { effect: "compensable", compensation: "null" }, /compensation: is missing/],
    [
      "irreversible with undo",
      { effect: "irreversible", compensation: "{tool: u}" },
      /an irreversible tool cannot be undone/,
    ],
    ["read with undo", { effect: "read_only", compensation: "{tool: u}" }, /only reads has nothing to undo/],
    ["a read-back of no undo", { verification: "{tool: u, expect: 1}" }, /verification: verifies an undo/],
    [
      "a read-back of nothing",
      { compensation: "{tool: u}", verification: "{tool: u}" },
      /verification\.expect: is missing; write the expected answer/,
    ],
    [
      "too many reads",
      { compensation: "{tool: u}", verification: "{tool: l, expect: 1, retries: 21}" },
      /retries: must be at most 20/,
    ],
    [
      "a negative wait",
      { compensation: "{tool: u}", verification: "{tool: l, expect: 1, backoff_ms: -1}" },
      /backoff_ms: must be at least 0/,
    ],
    [
      "a misspelt approval",
      { compensation: "{tool: u, requires_aproval: true}" },
      /compensation\.requires_aproval: unknown key; did you mean "requires_approval"/,
    ],
    [
      "an unknown kind",
      { compensation: "{tool: u, kind: undo}" },
      /kind: must be one of inverse, compensation/,
    ],
    [
      "a bad path",
      { compensation: "{tool: u, args: {a: {b: [$result.]}}}" },
      /compensation\.args\.a\.b\[0\]: is not a path/,
    ],
    [
      "a misspelt root",
      { compensation: "{tool: u, args: {a: $arg.id}}" },
      /compensation\.args\.a: is not a path/,
    ],
    [
      "a path inside text",
      { compensation: '{tool: u, args: {a: "id-$result.id"}}' },
      /contains a path inside other text/,
    ],
    [
      "a bad read-back path",
      { compensation: "{tool: u}", verification: "{tool: l, expect: 1, args: {a: $results.id}}" },
      /verification\.args\.a: is not a path/,
    ],
    ["a result as idempotency", { idempotency: "$result.id" }, /idempotency: must be a path into \$args/],
    ["no path as idempotency", { idempotency: "email" }, /idempotency: is not a path/],
    ["one bad path of several", { idempotency: "[$args.a, nope]" }, /idempotency\[1\]: is not a path/],
    ["a glob as prerequisite", { requires: "['a*']" }, /requires\[0\]: must be the name of one tool/],
    ["itself as prerequisite", { requires: "[t]" }, /requires\[0\]: a tool that requires itself/],
    ["a prerequisite twice", { requires: "[a, a]" }, /requires\[1\]: is listed twice/],
    ["a plain word as prerequisites", { requires: "a" }, /requires: must be a list/],
    [
      "an unknown blast radius",
      { risk: "{blast_radius: huge}" },
      /risk\.blast_radius: must be one of none, single, team, org, external/,
    ],
    [
      "a misspelt risk label",
      { risk: "{blast_raduis: org}" },
      /risk\.blast_raduis: unknown label; did you mean "blast_radius"/,
    ],
    [
      "a redaction that is no path",
      { audit: "{redaction: [email]}" },
      /audit\.redaction\[0\]: is not a path/,
    ],
    ["zero days", { audit: "{retention_days: 0}" }, /retention_days: must be at least 1/],
    ["half a day", { audit: "{retention_days: 1.5}" }, /retention_days: must be a whole number/],
    ["optional evidence", { audit: "{evidence_export: optional}" }, /evidence_export: must be required/],
    ["a control character in the owner", { owner: '"a\\u0007"' }, /owner: must not hold control/],
  ];
  test.each(bad)("%s", (_name, lines, wanted) => {
    verifies(
      "core.manifest.tool-required",
      "core.manifest.effect-required",
      "core.manifest.permission-required",
      "contract.effect.needs-compensation",
      "contract.effect.no-compensation",
      "contract.manifest.no-glob",
      "contract.manifest.blast-radius",
    );
    const found = problems(entry(lines));
    expect(found.join("\n")).toMatch(wanted);
    expect(found.every((line) => line.startsWith("m.yaml:"))).toBe(true);
  });

  test.each([
    [
      "an alias bomb",
      `a: &a [x,x]\n${"bcdefghij"
        .split("")
        .map((n, i) => `${n}: &${n} [${Array(9).fill(`*${"abcdefghi"[i]}`)}]`)
        .join("\n")}`,
    ],
    ["10,000 brackets", "[".repeat(10_000)],
    ["10,000 dashes", `${"- ".repeat(10_000)}x`],
    ["a duplicate key", "- tool: a\n  tool: b"],
    ["a function tag", '- tool: !!js/function "function () {}"'],
    ["two documents", "- tool: a\n---\n- tool: b"],
    ["tabs", "- tool: a\n\teffect: read"],
    ["nothing", ""],
    ["a comment only", "# later\n"],
    ["a prototype", "- __proto__: {tool: x}"],
    ["an entry that is no mapping", "- just text"],
    ["a circle of aliases", "- &a [*a]"],
    ["NUL bytes", "\0\0\0"],
  ])("%s is a problem with a line, not a crash", (_name, text) => {
    const found = problems(text);
    expect(found.length).toBeGreaterThan(0);
    for (const line of found) expect(line).toMatch(/^m\.yaml:\d+: \S/);
  });

  test("the same version of a tool twice, in one file or two", () => {
    verifies("contract.manifest.duplicate");
    expect(problems(entry() + entry({ version: "1" }))).toEqual([
      'm.yaml:4: tool t: version: "1" of this tool is already declared at m.yaml:1; change the version of one of them',
    ]);
    expect(() =>
      readManifests([
        { file: "a", text: entry() },
        { file: "b", text: entry() },
      ]),
    ).toThrow(/^b:1: tool t: .*declared at a:1/);
    expect(problems(entry() + entry({ version: "2" }))).toEqual([]);
  });

  test("a read-back that writes", () => {
    const text =
      entry({ compensation: "{tool: u}", verification: "{tool: u, expect: 1}" }) +
      entry({ tool: "u", effect: "irreversible" });
    expect(problems(text)).toEqual([
      "m.yaml:1: tool t: verification.tool: u is declared irreversible; a read-back must use a tool that only reads",
    ]);
  });

  test("a hostile tool name cannot break out of its line", () => {
    for (const line of problems(entry({ tool: '"a\\nb\\e[31m"' }))) expect(line).not.toMatch(/[\n\x1b]/);
  });

  test("an object has the same problems as an entry in a file", () => {
    expect(() => readManifestEntry({ tool: "a", effect: "reversible", permission: "p" }, "draft")).toThrow(
      /^draft: compensation: is missing/,
    );
    expect(() => readManifestEntry([], "draft")).toThrow(/^draft: must be a mapping/);
  });
});
