/** Mistakes in what `npm test` needs on a machine that has only Node. */
import type { Bug } from "../bug.ts";

const PROGRAMS = ["test/support/programs.test.ts"];

export const SETUP: readonly Bug[] = [
  {
    name: "a program that is missing is not installed",
    file: "scripts/programs.mjs",
    find: "await inTurn(() => install(aptGet, name));",
    replace: "await inTurn(() => aptGet);",
    tests: PROGRAMS,
  },
  {
    name: "a command that only tells how to install a program counts as the program",
    file: "scripts/programs.mjs",
    find: "for (const path of names.map(onPath)) {\n    if (path !== undefined && (await run(path, proof)) === 0) return path;",
    replace: "for (const path of names.map(onPath)) {\n    if (path !== undefined) return path;",
    tests: PROGRAMS,
  },
  {
    name: "a thing that the tests share is made anew for each that asks",
    file: "test/support/broker.ts",
    find: "made.set(name, answer);",
    replace: "",
    tests: PROGRAMS,
  },
];
