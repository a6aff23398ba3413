/**
 * Reports how many statements of the interface are verified, per issue and per section. `--prune` takes
 * the verified ones off the pending list; `--list <issue>` prints the pending ones of one issue.
 */
import { register } from "tsx/esm/api";

register();
const { REQUIREMENTS } = await import("../test/requirements/index.ts");
const { prunePending, readPending, scanTests } = await import("../test/requirements/scan.ts");

const args = process.argv.slice(2);
const verified = new Set(scanTests().mentions.map(({ id }) => id));

if (args.includes("--prune")) {
  console.log(`took ${prunePending(verified)} verified statements off pending.txt`);
} else if (args.includes("--list")) {
  const issue = Number(args[args.indexOf("--list") + 1]);
  const pending = new Set(readPending());
  for (const { id, text } of REQUIREMENTS.filter((one) => one.issue === issue && pending.has(one.id))) {
    console.log(`${id}\n    ${text}`);
  }
} else {
  table("issue", ({ issue }) => String(issue).padStart(2));
  console.log("");
  table("section", ({ source, section }) => `${source}: ${section}`);
}

function table(title, keyOf) {
  const rows = new Map();
  for (const requirement of REQUIREMENTS) {
    for (const key of [keyOf(requirement), "all"]) {
      const row = rows.get(key) ?? { done: 0, all: 0 };
      row.all++;
      if (verified.has(requirement.id)) row.done++;
      rows.set(key, row);
    }
  }
  const total = rows.get("all");
  rows.delete("all");
  const width = Math.max(title.length, ...[...rows.keys()].map((key) => key.length));
  console.log(`${title.padEnd(width)}  verified   of`);
  const sorted = [...rows].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  for (const [key, { done, all }] of [...sorted, ["all", total]]) {
    console.log(`${key.padEnd(width)}  ${String(done).padStart(8)} ${String(all).padStart(4)}`);
  }
}
