/** Mistakes in what people are told: archives, reports, plans, the document of the interface. */
import type { Bug } from "../bug.ts";

export const TOLD: readonly Bug[] = [
  {
    name: "an archive of an earlier state of the run stands for it",
    file: "src/app/archiving.ts",
    find: "if (archive.count < next_run_seq)",
    replace: "if (archive.count < 1)",
    tests: ["test/http/retention-archives.test.ts"],
  },
  {
    name: "an archive of another ledger stands for the run",
    file: "src/app/archiving.ts",
    find: 'return isOurs ? null : "is of another ledger";',
    replace: "return isOurs ? null : null;",
    tests: ["test/http/retention-archives.test.ts"],
  },
  {
    name: "a file has its name before it has its text",
    file: "src/evidence/out-file.ts",
    find: "await writeAll(file, parts, path);\n    const placed = await place(temporary);",
    replace: "const placed = await place(temporary);\n    await writeAll(file, parts, path);",
    tests: ["src/evidence/out-file.test.ts"],
  },
  {
    name: "runs that cannot be archived for want of a key are deleted",
    file: "src/retention/apply.ts",
    find: "report.kept.push({ run_id, reason: archive.impossible });",
    replace: "await purge(core, planned, options.by, null, report);",
    tests: ["test/http/retention-archives.test.ts"],
  },
  {
    name: "a reload that a person asked for is not in the log",
    file: "src/app/service.ts",
    find: 'log.info("reloaded", loaded);',
    replace: "",
    tests: ["test/http/conventions.test.ts"],
    only: "reload",
  },
  {
    name: "a run whose undo failed is called fully reversible",
    file: "src/rollback/plan.ts",
    find: "const failed = plan.actions.filter(hasFailed).length;",
    replace: "const failed = plan.actions.filter(() => false).length;",
    tests: ["test/http/failed-undo.test.ts"],
  },
  {
    name: "an undo that failed twice counts twice",
    file: "src/evidence/report/undo-counts.ts",
    find: "this.totals.failed--;",
    replace: "",
    tests: ["src/evidence/report/report.test.ts"],
  },
  {
    name: "an outcome that was found out counts beside the unknown one",
    file: "src/evidence/report/period-counts.ts",
    find: 'if (this.uncertain.delete(key)) this.countOutcome(record, "uncertain", -1);',
    replace: "",
    tests: ["src/evidence/report/report.test.ts"],
  },
  {
    name: "the period report has a word of its own for uncertain",
    file: "src/evidence/report/period-rows.ts",
    find: '["uncertain", String(outcomes.uncertain)]',
    replace: '["outcome unknown", String(outcomes.uncertain)]',
    tests: ["src/evidence/report/report.test.ts"],
  },
];
