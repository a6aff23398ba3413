import { Case } from "/work/main/test/sim/rollback-case.ts";
const n = Number(process.argv[2]); const from = Number(process.argv[3] ?? 1);
const t = performance.now();
const totals: Record<string, number> = {};
for (let seed = from; seed < from + n; seed++) { const c = new Case(seed); await c.play(); if (c.problems.length) { console.log("seed", seed, c.problems); process.exit(1); }
 for (const [k, v] of Object.entries(c.counts)) totals[k] = (totals[k] ?? 0) + v; }
console.log(((performance.now() - t) / n).toFixed(2), "ms/case", totals);
process.exit(0);
