/** Flows that no declared tool can set off, or that restrict none: a slip in a name or a label, most of the time. */
import { toolLabels } from "../manifest/labels.ts";
import type { Manifest } from "../manifest/types.ts";
import { MatchIndex } from "./match.ts";
import { NO_CALL } from "./prove/domain.ts";
import type { MatchDoc, PolicyDoc } from "./schema.ts";

/** A sentence for each side of a flow that matches none of the manifests. */
export function idleFlows({ flows = [] }: PolicyDoc, manifests: readonly Manifest[]): string[] {
  if (manifests.length === 0) return [];
  const isIdle = (match: MatchDoc | undefined) => {
    const index = new MatchIndex([{ match: ofTools(match ?? {}), item: true }]);
    return manifests.every(
      (one) => index.matching({ ...NO_CALL, tool: one.tool, ...toolLabels(one) }).length === 0,
    );
  };
  return flows.flatMap(({ id, after, then }) =>
    Object.entries({ after, then })
      .filter(([, match]) => isIdle(match))
      .map(([side]) => `flow ${id}: ${side} matches no declared tool, so the flow never takes effect`),
  );
}

/** Who calls, and where, is not known of a tool. */
function ofTools({ tool, effect, data_class, source, sink }: MatchDoc): MatchDoc {
  return { tool, effect, data_class, source, sink };
}
