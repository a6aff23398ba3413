/**
 * `npm run prove -- assertions [--count n --seed s]`: a million mutated passkey assertions, of which none may be accepted.
 * `npm run prove -- clients`: the sessions of all real coding agents, which it downloads (500 MB).
 * `npm run prove -- conformance`: all authorization scenarios of the official MCP conformance suite, in both roles.
 * `npm run prove -- authzen --folder <dir>`: the published requests of the AuthZEN working group's to-do scenario.
 * `npm run prove -- cascades [--count n --seed s]`: random histories of five agents, of which one is undone with what the
 * others built on it.
 * `npm run prove -- histories [--count n --seed s]`: random histories of edits, commands and another writer, undone.
 * `npm run prove -- proxy`: real programs inside `svc run`, with those that a bare machine does not have.
 * `npm run prove -- push`: push messages and the installed console in a whole Chromium, with its notifications.
 * `npm run prove -- tau2 --from <checkout of tau2-bench> [--airline <directory>] [--limit <tasks>]
 * [--python <program>]`: the ground truth of a shop and an airline, rolled back. The directory holds the airline's data
 * of tau-bench, for a checkout without it.
 * `npm run prove -- long`: the tests whose sizes `npm test` bounds, with their long ones.
 * `npm run prove -- packs`: the undos of every service pack against its emulator.
 * `npm run prove -- packs --from <directory> [--write]`: compares the kept facts about the services with their published
 * descriptions, or writes them. The directory holds clones as `<owner>/<name>`, and `@octokit/openapi` installed.
 * `npm run prove [-- --pairs n --seed s]`: random pairs of policies, each compared by the prover and held to what the
 * decision function says to calls. Prints a line for every ten thousand, so that a run that is cut short has said how
 * far it came. Exits 1 if the two disagree.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { MUTATION_SHARES, playMutations, seededRandom } from "../../test/support/mutations.ts";
import type { SoftAlgorithm } from "../../test/support/passkeys.ts";
import { heldToPairs } from "../../test/support/told.ts";
import { playCascade } from "./cascades.ts";
import { playHistory } from "./histories.ts";
import { comparePacks } from "./packs.ts";
import { playGroundTruth } from "./tau2/run.ts";

const A_LINE = 1_000;
const A_BATCH = 25_000;
const A_FAMILY = 10;

export async function main(args: string[]): Promise<number> {
  if (args[0] === "proxy") return proveProxy(args.slice(1));
  if (args[0] === "push") return provePush(args.slice(1));
  if (args[0] === "tau2") return proveTau2(args.slice(1));
  if (args[0] === "assertions") return proveAssertions(args.slice(1));
  if (args[0] === "long") return proveLong(args.slice(1));
  if (args[0] === "packs") return provePacks(args.slice(1));
  if (args[0] === "clients") return proveClients(args.slice(1));
  if (args[0] === "conformance") return proveConformance(args.slice(1));
  if (args[0] === "authzen") return proveAuthzen(args.slice(1));
  if (args[0] === "cascades") return proveCascades(args.slice(1));
  if (args[0] === "histories") return proveHistories(args.slice(1));
  const { values } = parseArgs({
    args,
    options: { pairs: { type: "string", default: "10000" }, seed: { type: "string", default: "0" } },
  });
  const [pairs, first] = [Number(values.pairs), Number(values.seed)];
  if (!Number.isInteger(pairs) || !Number.isInteger(first) || pairs < 1)
    throw new Error("--pairs and --seed are whole numbers");
  let agreed = true;
  for (let done = 0; done * A_FAMILY < pairs; done += A_LINE) {
    const families = Math.min(A_LINE, Math.ceil(pairs / A_FAMILY) - done);
    const seen = heldToPairs(first + done, families);
    console.log(JSON.stringify({ seed: first + done, ...seen }));
    if (seen.disagreement !== null) agreed = false;
  }
  return agreed ? 0 : 1;
}

async function proveCascades(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { count: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } },
  });
  const [count, first] = [Number(values.count), Number(values.seed)];
  if (!Number.isInteger(count) || !Number.isInteger(first) || count < 1)
    throw new Error("--count and --seed are whole numbers");
  const problems: string[] = [];
  for (let seed = first; seed < first + count; seed++) {
    problems.push(...(await playCascade(seed)));
    if ((seed - first + 1) % A_LINE === 0)
      console.log(JSON.stringify({ cascades: seed - first + 1, problems: problems.length }));
  }
  for (const problem of problems) console.log(problem);
  return problems.length === 0 ? 0 : 1;
}

/** Every history in a separate directory, which is deleted if the history holds. */
function proveHistories(args: string[]): number {
  const { values } = parseArgs({
    args,
    options: { count: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } },
  });
  const [count, first] = [Number(values.count), Number(values.seed)];
  if (!Number.isInteger(count) || !Number.isInteger(first) || count < 1)
    throw new Error("--count and --seed are whole numbers");
  let problems = 0;
  for (let seed = first; seed < first + count; seed++) {
    const folder = mkdtempSync(join(tmpdir(), "svc-history-"));
    const found = playHistory(seed, folder);
    problems += found.length;
    for (const problem of found) console.log(problem);
    if (found.length === 0) rmSync(folder, { recursive: true, force: true });
    if ((seed - first + 1) % A_LINE === 0)
      console.log(JSON.stringify({ histories: seed - first + 1, problems }));
  }
  return problems === 0 ? 0 : 1;
}

/** Most of them against the verifier that all surfaces share, and thousands against a whole server. */
async function proveAssertions(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { count: { type: "string", default: "1000000" }, seed: { type: "string", default: "38" } },
  });
  const [count, seed] = [Number(values.count), Number(values.seed)];
  if (!Number.isInteger(count) || !Number.isInteger(seed) || count < 1)
    throw new Error("--count and --seed are whole numbers");
  const accepted: object[] = [];
  let played = 0;
  for (const [alg, share] of Object.entries(MUTATION_SHARES) as [SoftAlgorithm, number][]) {
    const random = seededRandom(seed);
    for (let left = Math.round(count * share); left > 0; left -= A_BATCH) {
      const batch = Math.min(A_BATCH, left);
      accepted.push(...(await playMutations(alg, batch, random)));
      played += batch;
      console.log(JSON.stringify({ assertions: played, alg, accepted: accepted.length }));
    }
  }
  for (const one of accepted) console.log(JSON.stringify(one));
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/http/mutated.test.ts"];
  const env = { ...process.env, SVC_MUTATIONS: values.count, SVC_MUTATIONS_SEED: values.seed };
  const { status } = spawnSync(process.execPath, vitest, { stdio: "inherit", env });
  return accepted.length > 0 ? 1 : (status ?? 1);
}

/** Every test file that asks for its size. */
function proveLong(args: string[]): number {
  const files = ["src", "test"].flatMap((folder) =>
    (readdirSync(folder, { recursive: true }) as string[])
      .filter((name) => name.endsWith(".test.ts") && !name.includes("node_modules"))
      .map((name) => join(folder, name))
      .filter((path) => readFileSync(path, "utf8").includes("support/long.ts")),
  );
  const vitest = ["node_modules/vitest/vitest.mjs", "run", ...files, ...args];
  const env = { ...process.env, SVC_PROVE_LONG: "1" };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}

function proveProxy(args: string[]): number {
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/proxy/programs.test.ts", ...args];
  const env = { ...process.env, SVC_PROVE_PROXY: "all" };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}

function provePush(args: string[]): number {
  const files = ["test/console/push.test.ts", "test/console/phone-walk.test.ts"];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", ...files, ...args];
  const env = { ...process.env, SVC_PROVE_PUSH: "whole" };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}

async function proveTau2(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      from: { type: "string" },
      airline: { type: "string" },
      python: { type: "string", default: "python3" },
      limit: { type: "string" },
    },
  });
  const { from: checkout, airline, python, limit } = values;
  if (checkout === undefined) throw new Error("--from names a checkout of tau2-bench");
  const from = {
    checkout,
    python,
    ...(airline === undefined ? {} : { parts: airline }),
    ...(limit === undefined ? {} : { limit: Number(limit) }),
  };
  let honest = true;
  for (const domain of ["retail", "airline"] as const)
    for (const restores of [false, true]) {
      const count = await playGroundTruth(domain, restores, from);
      console.log(JSON.stringify(count));
      if (count.unnamed.length > 0) honest = false;
    }
  return honest ? 0 : 1;
}

function provePacks(args: string[]): number {
  const { values } = parseArgs({ args, options: { from: { type: "string" }, write: { type: "boolean" } } });
  if (values.from !== undefined) return comparePacks(values.from, values.write === true);
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/packs"];
  const env = { ...process.env, SVC_PROVE_PACKS: "all" };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}

function proveClients(args: string[]): number {
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/clients", ...args];
  const env = { ...process.env, SVC_PROVE_CLIENTS: process.env["SVC_PROVE_CLIENTS"] ?? "all" };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}

function proveConformance(args: string[]): number {
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/gateway/conformance-auth.test.ts", ...args];
  const env = { ...process.env, SVC_PROVE_CONFORMANCE: "all" };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}

function proveAuthzen(args: string[]): number {
  const { values } = parseArgs({ args, options: { folder: { type: "string" } } });
  const { folder } = values;
  if (folder === undefined)
    throw new Error(
      "--folder names interop/authzen-todo-backend/test of the group's repository openid/authzen",
    );
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/http/authzen-interop.test.ts"];
  const env = { ...process.env, SVC_PROVE_AUTHZEN: resolve(folder) };
  return spawnSync(process.execPath, vitest, { stdio: "inherit", env }).status ?? 1;
}
