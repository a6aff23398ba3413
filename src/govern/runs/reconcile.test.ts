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

it("matches equal calls of a client without ids by order and time", () => {
  verifies("beyond.hooks.reconcile-order");
  const same = "~0123";
  const asked = (n: number, intended_ms: number, status?: StepDoc["status"]) => ({
    ...step(n, same, status),
    intended_ms,
  });
  const minutes = (n: number) => n * 60_000;
  // The first ran before the hook was asked: the later ask is another call, which never ran.
  const early = compareCalls([asked(0, minutes(10))], [call(same, true, minutes(1))]);
  expect(early.ungoverned).toEqual([{ ref: same, tool: "Bash", at_ms: minutes(1) }]);
  expect(early.unused.map(({ step: n }) => n)).toEqual([0]);
  // The one that nobody asked for is named, and not a later one.
  const hidden = compareCalls(
    [asked(0, minutes(10)), asked(1, minutes(20))],
    [minutes(21), minutes(1), minutes(11)].map((at_ms) => call(same, true, at_ms)),
  );
  expect(hidden.ungoverned.map(({ at_ms }) => at_ms)).toEqual([minutes(1)]);
  expect(hidden.unused).toEqual([]);
  // The user declined the first, and the second ran.
  const refused = compareCalls(
    [asked(0, minutes(1), "failed"), asked(1, minutes(2))],
    [call(same, false, minutes(1)), call(same, true, minutes(2))],
  );
  expect([refused.ungoverned, refused.unused.map(({ step: n }) => n)]).toEqual([[], []]);
  // Clocks differ a little, and some transcripts have no time.
  for (const at_ms of [minutes(10) - 59_000, 0])
    expect(compareCalls([asked(0, minutes(10))], [call(same, true, at_ms)]).ungoverned).toEqual([]);
  // An id is unique, regardless of its time.
  expect(
    compareCalls([{ ...step(0, "id"), intended_ms: minutes(10) }], [call("id", true, 1)]).ungoverned,
  ).toEqual([]);
});

it("matches tools by name where the transcript names them as the manifests do", () => {
  verifies("beyond.hooks.reconcile-order");
  const named = (tool: string, at_ms: number) => ({ ref: null, tool, at_ms, ran: true });
  const steps = [
    { ...step(0), tool: "files.read" },
    { ...step(1), tool: "files.write" },
  ];
  const isKnown = (tool: string) => tool.startsWith("files.");
  const swapped = compareCalls(steps, [named("files.write", 5), named("files.read", 6)], isKnown);
  expect([swapped.ungoverned, swapped.unused]).toEqual([[], []]);
  const other = compareCalls(steps, [named("files.read", 5), named("files.delete", 6)], isKnown);
  expect(other.ungoverned.map(({ tool }) => tool)).toEqual(["files.delete"]);
  expect(other.unused.map(({ tool }) => tool)).toEqual(["files.write"]);
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
