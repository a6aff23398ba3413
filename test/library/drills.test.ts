/** Drills in an application, with its own functions; and the two refusals of a server that has no upstreams. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("drills");
const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {exists: false}, retries: 0}
  drill: {args: {name: a-canary}, expect: {id: 1}}
`;
writeFileSync(join(folder, "manifests.yaml"), MANIFESTS);
writeFileSync(
  join(folder, "svc.config.yaml"),
  `manifests: manifests.yaml\ndata: data\nenvironment: test\ndrills: {environments: [test]}\n`,
);
writeFileSync(join(folder, "live.config.yaml"), "manifests: manifests.yaml\ndata: data\nenvironment: live\n");

it("drills with the application's own functions, and believes only what it reads", async () => {
  verifies("beyond.drill.library", "beyond.drill.liars", "beyond.drill.environments");
  const svc = await open({ config: join(folder, "svc.config.yaml") });
  let there = new Set<number>();
  const world = {
    call: () => {
      there = new Set([1]);
      return { id: 1 };
    },
    verifier: async () => ({ exists: there.has(1) }),
  };
  const honest = async () => void there.delete(1);
  const [good] = await svc.drill({ ...world, compensator: honest });
  expect(good).toMatchObject({ tool: "thing.make", passed: true, problem: null, by: "library" });
  expect(await svc.drill({ ...world, compensator: honest, due: true })).toEqual([]);
  const [lie] = await svc.drill({ ...world, compensator: async () => ({ ok: true }) });
  expect(lie).toMatchObject({ passed: false, problem: expect.stringContaining("the undo failed") });
  const [idle] = await svc.drill({
    ...world,
    call: () => {
      there = new Set();
      return { id: 1 };
    },
    compensator: honest,
    tools: ["thing.make"],
  });
  expect(idle).toMatchObject({ passed: false });
  const [broken] = await svc.drill({
    ...world,
    call: () => {
      throw new Error("it is down: a-canary is not taken");
    },
    compensator: honest,
  });
  // The problem is on the ledger, which holds no value of a call.
  expect(broken?.problem).toBe("the call failed: it is down: [argument] is not taken");
  await expect(svc.drill({ ...world, compensator: honest, tools: ["none"] })).rejects.toThrow("no manifest");
  await svc.close();
  const live = await open({ config: join(folder, "live.config.yaml") });
  await expect(live.drill({ ...world, compensator: honest })).rejects.toMatchObject({ code: "forbidden" });
  await live.close();
});

/** A library with these manifests, in an environment where drills may run. */
function drillable(manifests: string) {
  const folder = tempDir("drills");
  writeFileSync(join(folder, "manifests.yaml"), manifests);
  writeFileSync(
    join(folder, "svc.config.yaml"),
    "manifests: manifests.yaml\ndata: data\nenvironment: test\ndrills: {environments: [test]}\n",
  );
  return open({ config: join(folder, "svc.config.yaml") });
}

it("proves an undo that restores the earlier state", async () => {
  verifies("beyond.drill.library");
  const svc = await drillable(`
- {tool: doc.read, effect: read, permission: p}
- tool: doc.write
  effect: reversible
  permission: p
  before: {tool: doc.read, args: {path: $args.path}}
  compensation: {tool: doc.put, args: {path: $args.path, text: $before.text}}
  verification: {tool: doc.read, args: {path: $args.path}, expect: {text: $before.text}, retries: 0}
  drill: {args: {path: a, text: new}}
`);
  const docs = new Map([["a", "old"]]);
  const put = (given: unknown) => {
    const { path, text } = given as { path: string; text: string };
    docs.set(path, text);
    return { written: true };
  };
  const [proof] = await svc.drill({
    call: ({ args }) => put(args),
    verifier: async () => ({ text: docs.get("a")! }),
    compensator: async ({ args }) => put(args),
  });
  expect([proof?.problem, docs.get("a")]).toEqual([null, "old"]);
  await svc.close();
});

it("fails an undo that answers success and did nothing, half of it, or all of it twice", async () => {
  verifies("beyond.drill.liars");
  const svc = await drillable(`
- {tool: stock.read, effect: read, permission: p}
- tool: stock.take
  effect: compensable
  permission: p
  before: {tool: stock.read, args: {}}
  compensation: {tool: stock.add, args: {n: $args.n}}
  verification: {tool: stock.read, args: {}, expect: {left: $before.left}, retries: 0}
  drill: {args: {n: 4}}
`);
  const added = async (by: (n: number) => number) => {
    let left = 10;
    const nOf = (given: unknown) => (given as { n: number }).n;
    const [proof] = await svc.drill({
      call: ({ args }) => {
        left -= nOf(args);
        return { taken: true };
      },
      verifier: async () => ({ left }),
      compensator: async ({ args }) => {
        left += by(nOf(args));
        return { ok: true };
      },
    });
    return { passed: proof?.passed, problem: proof?.problem, left };
  };
  const problem = expect.stringMatching(/^the undo failed: verification failed: stock\.read did not show/);
  expect(await added((n) => n)).toEqual({ passed: true, problem: null, left: 10 });
  expect(await added(() => 0)).toEqual({ passed: false, problem, left: 6 });
  expect(await added((n) => n / 2)).toEqual({ passed: false, problem, left: 8 });
  expect(await added((n) => 2 * n)).toEqual({ passed: false, problem, left: 14 });
  await svc.close();
});

it("is a 404 on a server without upstreams, in any environment", async () => {
  verifies("beyond.drill.no-upstreams");
  const s = await testServer({ config: "environment: live\n" });
  const answer = await s.call("operator", "POST", "/v1/drills", {});
  expect([answer.status, answer.body.error]).toEqual([
    404,
    expect.stringContaining("no upstreams are configured"),
  ]);
  expect((await s.call("auditor", "GET", "/v1/drills")).body).toEqual({ drills: [] });
});

it("is refused at validation where it could prove nothing", () => {
  verifies("beyond.drill.manifest");
  const problems = (text: string) => {
    try {
      readManifests([{ file: "m.yaml", text }]);
      return "";
    } catch (error) {
      return (error as { problems: string[] }).problems.join("\n");
    }
  };
  expect(problems(MANIFESTS)).toBe("");
  expect(problems("- {tool: a, effect: irreversible, permission: p, drill: {args: {}}}")).toContain(
    "an irreversible tool cannot be undone, so a drill cannot test its undo",
  );
  expect(problems("- {tool: a, effect: read, permission: p, drill: {args: {}}}")).toContain("drill");
  expect(problems("- {tool: a, effect: idempotent, permission: p, drill: {}}")).toContain("no compensation");
  expect(problems(MANIFESTS.replace(/ {2}verification.*\n/, ""))).toContain("drill: needs a verification");
});
