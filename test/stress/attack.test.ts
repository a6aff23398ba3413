/** A small attack run, as anybody would start it: every row of the table, and over a thousand inputs for every area. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { ATTACKS } from "../../stress/attack/attacks.ts";
import { replyProblem } from "../../stress/attack/batches.ts";
import { COVERED } from "../../stress/attack/covered.ts";
import { FORM_FIELDS } from "../../stress/attack/heavy.ts";
import { PARSERS } from "../../stress/attack/parsers.ts";
import { bodies } from "../../stress/attack/requests.ts";
import { ROOT } from "../support/files.ts";
import { verifies } from "../support/verifies.ts";
import { runProof } from "./run-proof.ts";

const attack = (...args: string[]) => runProof("attack", args);

describe("npm run attack", () => {
  it("finds nothing in the table or with over a thousand inputs", async () => {
    // How long an input holds the server up is measured by the command; here only what hangs counts, since a busy
    // machine is slow at everything.
    const { code, out, err } = await attack(
      ...["--inputs", "1200", "--seed", "7", "--stall-ms", "10000", "--json"],
    );
    const rows = JSON.parse(out) as { area: string; inputs: number; accepted: number; problems: string[] }[];
    for (const row of rows) expect(row.problems, `${row.area}\n${err}`).toEqual([]);
    expect(rows.map(({ area }) => area)).toEqual([
      "table",
      "heavy",
      "authority",
      "upstreams",
      "http",
      "paths",
      "mcp",
      ...Object.keys(PARSERS),
    ]);
    for (const row of rows) expect(row.inputs, row.area).toBeGreaterThan(20);
    verifies("beyond.heavy.attack");
    for (const what of [
      "reading a body of",
      "console /plans/:id",
      "/v1/runs/{id}/report",
      "card: ",
      "intent: ",
    ])
      expect(err, what).toContain(what);
    // An area whose inputs were all refused by the parser would have tried only the parser.
    for (const { area, accepted } of rows)
      if (["authority", "upstreams", "http", "paths", "mcp", "json"].includes(area))
        expect(accepted, area).toBeGreaterThan(0);
    expect(code).toBe(0);
  });

  it("refuses areas and numbers that are none", async () => {
    expect(await attack("--area", "moon")).toMatchObject({
      code: 1,
      err: expect.stringContaining("--area: one of"),
    });
    // An area may be named alone, too.
    expect(await attack("moon")).toMatchObject({ code: 1, err: expect.stringContaining("--area: one of") });
    expect(await attack("--inputs", "many")).toMatchObject({ code: 1 });
  });

  it("tries the named cases of the largest data alone", async () => {
    const small = ["heavy", "--inputs", "1200", "--stall-ms", "10000"];
    const one = await attack(...small, "--only", "^changes: reversed$");
    expect(one.err).toContain("card: edit, reversed");
    expect(one.err).not.toContain("/v1/plans/");
    expect(one.code).toBe(0);
    expect(await attack(...small, "--only", "no such case")).toMatchObject({
      code: 1,
      out: expect.stringContaining("--only: no case has such a name"),
    });
  });
});

describe("what an attack run relies on", () => {
  it.each(COVERED.map((row) => [row.name, row] as const))(
    "%s: the test it names is there",
    (_name, { file, test }) => {
      expect(readFileSync(join(ROOT, file), "utf8")).toContain(test);
    },
  );

  it("every row of the table sends something and has its own name", () => {
    for (const { name, send } of ATTACKS) expect([name, send.length > 0]).toEqual([name, true]);
    const names = [...ATTACKS, ...COVERED].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("every form of the console is tried with the most expensive input, and none that has gone", () => {
    const forms = CONSOLE_ROUTES.filter(({ method }) => method === "POST").map(({ path }) => path);
    expect(Object.keys(FORM_FIELDS).sort()).toEqual(forms.sort());
  });

  it("a seed gives the same inputs again", () => {
    const once = () =>
      fc.sample(bodies("r"), { seed: 3, numRuns: 50 }).map((bytes) => bytes.toString("latin1"));
    expect(once()).toEqual(once());
  });

  it("a 500, a stack trace and a hung-up connection are findings, a refusal is none", () => {
    const reply = (status: number, body: string) => replyProblem({ status, headers: "", body });
    expect(reply(500, "{}")).toContain("status 500");
    expect(reply(400, "x\n    at f (file.js:1:2)")).toContain("insides");
    expect(reply(0, "")).toContain("closed without an answer");
    expect(reply(400, '{"error":"no"}')).toBeUndefined();
  });
});
