import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { compareCalls, isDifference, type ReportedCall } from "./reconcile.ts";
import type { StepDoc } from "./run.ts";

const step = (n: number, ref?: string, status: StepDoc["status"] = "succeeded") => ({
  run_id: "r",
  step: n,
  ref,
  tool: "code.shell_read",
  status,
  intended_ms: n,
});
const call = (ref: string | null, ran = true, at_ms = 0): ReportedCall => ({ ref, tool: "Bash", at_ms, ran });

it("finds every call that ran without asking, and every ask that never ran", () => {
  verifies("beyond.hooks.reconcile");
  const found = compareCalls(
    [step(0, "a"), step(1, "b"), step(2, "c", "failed"), step(3, "d", "intended")],
    [call("a"), call("x"), call("refused", false), call("b", false)],
  );
  expect(found).toMatchObject({ asked: 4, ran: 2 });
  expect(found.ungoverned.map(({ ref }) => ref)).toEqual(["x"]);
  expect(found.unused.map(({ ref }) => ref)).toEqual(["b", "d"]);
});

it("counts a call that ran twice on one ask", () => {
  verifies("beyond.hooks.reconcile");
  expect(compareCalls([step(0, "a")], [call("a", true, 1), call("a", true, 2)]).ungoverned).toEqual([
    { ref: "a", tool: "Bash", at_ms: 2 },
  ]);
});

it("matches by order where the client gives no id", () => {
  verifies("beyond.hooks.reconcile");
  const found = compareCalls(
    [step(0), step(1)],
    [call(null, true, 3), call(null, true, 1), call(null, true, 9)],
  );
  expect(found.ungoverned).toEqual([{ ref: null, tool: "Bash", at_ms: 9 }]);
  expect(compareCalls([step(0), step(1)], [call(null)]).unused.map(({ step: n }) => n)).toEqual([1]);
});

it("reads a difference from the record's text alone", () => {
  verifies("beyond.hooks.reconcile");
  expect(isDifference("codex: 2 asked, 2 ran, 0 ungoverned, 0 unused; reported by a")).toBe(false);
  expect(isDifference("codex: 2 asked, 3 ran, 1 ungoverned, 0 unused; reported by a")).toBe(true);
  expect(isDifference("codex: 2 asked, 1 ran, 0 ungoverned, 1 unused; reported by a")).toBe(true);
  // A reporter's name cannot make an equal text of it.
  expect(
    isDifference(
      "codex: 2 asked, 3 ran, 1 ungoverned, 0 unused; reported by x, 0 ungoverned, 0 unused; reported by y",
    ),
  ).toBe(true);
});
