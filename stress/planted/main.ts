/**
 * `npm run plant [-- --only text --list]`: plants one small bug after the other in a copy of the sources, runs the
 * tests that ought to notice, and tells which bugs were caught. Exits 1 when one was missed. The same tests are
 * run without any bug first: a test that fails anyway catches nothing.
 */
import { parseArgs } from "node:util";
import { BUGS } from "./all.ts";
import type { Bug } from "./bug.ts";
import { type Ran, runTests } from "./suite.ts";
import { Tree } from "./tree.ts";

export async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { only: { type: "string", default: "" }, list: { type: "boolean", default: false } },
  });
  const bugs = BUGS.filter(({ name }) => name.includes(values.only));
  if (bugs.length === 0) {
    console.error(`--only: no bug's name holds ${JSON.stringify(values.only)}; --list names them`);
    return 1;
  }
  if (values.list) {
    for (const { name, file } of bugs) console.log(`${name} (${file})`);
    return 0;
  }
  const tree = new Tree(process.cwd());
  const stop = () => tree.remove();
  process.once("exit", stop);
  try {
    return (await soundFirst(tree, bugs)) ? await plantAll(tree, bugs) : 1;
  } finally {
    stop();
  }
}

/** Whether the tests pass as long as nothing is planted. */
async function soundFirst(tree: Tree, bugs: readonly Bug[]): Promise<boolean> {
  const files = [...new Set(bugs.flatMap(({ tests }) => tests))];
  const { tests, failed, unloadable } = await runTests(tree.folder, files, undefined);
  console.log(`without a bug: ${tests} tests in ${files.length} files, ${failed.length} failed`);
  for (const name of [...failed, ...unloadable]) console.log(`  ${name}`);
  return failed.length === 0 && unloadable.length === 0 && tests > 0;
}

async function plantAll(tree: Tree, bugs: readonly Bug[]): Promise<number> {
  let caught = 0;
  for (const bug of bugs) {
    const began = performance.now();
    const ran = await tree.with(bug, () => runTests(tree.folder, bug.tests, bug.only));
    const { word, why } = judge(ran);
    if (word === "caught") caught++;
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    console.log(`${word.padEnd(6)}  ${bug.name} (${seconds} s)${why === "" ? "" : `: ${why}`}`);
  }
  console.log(`\n${caught} of ${bugs.length} planted bugs caught`);
  return caught === bugs.length ? 0 : 1;
}

function judge({ tests, failed, unloadable }: Ran): { word: "caught" | "MISSED"; why: string } {
  if (unloadable.length > 0) return { word: "MISSED", why: `it does not load: ${unloadable[0]}` };
  if (tests === 0) return { word: "MISSED", why: "no test was run" };
  return failed.length > 0 ? { word: "caught", why: failed[0]! } : { word: "MISSED", why: "" };
}
