/** A vitest reporter that writes the true counts of a run to the file named by SVC_TEST_COUNTS. */
import { writeFileSync } from "node:fs";

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      let failedHere = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") counts.passed++;
        else if (state === "failed") failedHere++;
        else counts.skipped++;
      }
      // A file that did not load, or whose hooks failed, has no failed test to show for it.
      if (failedHere === 0 && !module.ok()) failedHere = 1;
      counts.failed += failedHere;
    }
    counts.failed += unhandledErrors.length;
    const file = process.env.SVC_TEST_COUNTS;
    if (file) writeFileSync(file, JSON.stringify(counts));
  }
}
