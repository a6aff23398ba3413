/** Followed values of a run: texts that a person gives it, and which results feed which calls. */
import * as z from "zod";
import { runAnyInSlices } from "../../child-process/event-loop-slices.ts";
import type { EngineCore } from "../../govern/core.ts";
import { rowPages } from "../../govern/port/pages.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { assertRunOwner, loadRun } from "../../govern/runs/load-run.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { giveTexts } from "../../govern/traces/follow.ts";
import { tracedRun } from "../../govern/traces/traced-run.ts";
import { forbiddenError, SvcError } from "../../kernel/errors.ts";
import { asJson } from "../../kernel/json/json.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { TRACE_KINDS } from "../../rules/trace/fingerprint-map.ts";
import { precomputingTraceValues } from "../../rules/trace/trace-values.ts";
import { readRun, requireOwnRun } from "../pipeline/access.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { givenView, ofRun, runId } from "../schemas.ts";

/** Texts of people. Only their fingerprints are stored. */
export const givenTexts = z
  .array(z.string())
  .max(SERVICE_LIMITS.given_texts, `at most ${SERVICE_LIMITS.given_texts} texts`);

export function assertMayGive(principal: CallerPrincipal): void {
  if (principal.may_give !== true)
    throw forbiddenError("given texts need a key with may_give", "may_give_required");
}

/** Adds texts to a run, and returns when each of the run's texts was added, and its length. */
export async function addGivenTexts(
  core: EngineCore,
  run_id: string,
  principal: CallerPrincipal,
  texts: readonly string[],
) {
  const all = asJson([...texts]);
  if (isLargeValue(all)) await runAnyInSlices(precomputingTraceValues(all, "$given"));
  return core.store.transact({
    needs: [
      ["runs", run_id],
      ["traces", run_id],
    ],
    run(tx) {
      const run: RunDoc = loadRun(tx, run_id);
      assertRunOwner(run, principal);
      const traced = tracedRun(tx, run, run.next_step);
      const before = tx.get("traces", traced.run_id)?.given_chars ?? 0;
      const chars = texts.reduce((sum, text) => sum + text.length, before);
      if (chars > SERVICE_LIMITS.given_chars)
        throw new SvcError(
          "too_large",
          `texts: a run can have ${SERVICE_LIMITS.given_chars} characters of given texts, and has ${before}`,
        );
      return giveTexts(tx, core.rules().policy, traced, all as string[], core.env.now());
    },
  });
}

export const giveRunTexts = defineOperation({
  id: "give_texts",
  summary: "Give a run the texts of a person, so that their values no longer count as foreign",
  role: "agent",
  input: z.strictObject({ run_id: runId, texts: givenTexts }),
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({ given: z.array(givenView) }),
  errors: { not_found: "unknown run, or another agent's", forbidden: "the key has no may_give" },
  async run({ app, principal }, { run_id, texts }) {
    await requireOwnRun(app, principal, run_id);
    assertMayGive(principal);
    return { given: await addGivenTexts(app.core, run_id, principal, texts) };
  },
});

const place = { run_id: z.string(), step: z.int() };

export const getLineage = defineOperation({
  id: "lineage",
  summary: "List which results fed which calls of a run, by kind of value",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({
    edges: z.array(
      z.strictObject({
        from: z.strictObject(place),
        to: z.strictObject({ ...place, path: z.string() }),
        kind: z.enum(TRACE_KINDS),
      }),
    ),
  }),
  errors: { not_found: "unknown run" },
  async run({ app }, { run_id }) {
    const run = await readRun(app, run_id);
    const edges = [];
    for await (const rows of rowPages(app.core.store, "steps", { owner: run.run_id }))
      for (const { doc } of rows)
        for (const { run_id: source, step, path, kind } of doc.fed_by ?? [])
          edges.push({
            from: { run_id: source, step },
            to: { run_id: doc.run_id, step: doc.step, path },
            kind,
          });
    return { edges };
  },
});
