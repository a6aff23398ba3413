/** Drill results of tools, stored as one document per tool. */
import type { EngineCore } from "../../govern/core.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import {
  type DrillDoc,
  describeProof,
  type UndoProof,
  undoProofOf,
  unprovenReason,
} from "../../rules/undo-proof.ts";

/** Limit on listed drills. */
const MAX_LISTED_DRILLS = 10_000;

export async function allDrills({ store }: EngineCore): Promise<DrillDoc[]> {
  const rows = await store.list("drills", { order: "desc", limit: MAX_LISTED_DRILLS });
  return rows.map(({ doc }) => doc);
}

/** Drill result for the undo in the tool's active manifest; null if that declares no undo. */
async function proofOfTool(core: EngineCore, tool: string): Promise<UndoProof | null> {
  const { manifests } = core.rules();
  const manifest = manifests.active(tool);
  if (manifest === undefined || manifest.compensation === null) return null;
  return undoProofOf(await core.store.get("drills", tool), manifests.hashOf(manifest));
}

/** Drill result as text, for plans, cards and pages. */
export async function proofWordsOf(core: EngineCore, tool: string): Promise<string | null> {
  const proof = await proofOfTool(core, tool);
  return proof === null ? null : describeProof(proof);
}

/** Manifests of the tools that declare a drill, in manifest order. */
export function drillableManifests(core: EngineCore): ToolManifest[] {
  const { manifests } = core.rules();
  const tools = new Set(manifests.all.map(({ tool }) => tool));
  return [...tools].flatMap((tool) => {
    const manifest = manifests.active(tool);
    return manifest?.drill === undefined ? [] : [manifest];
  });
}

const DUE_AFTER_MS = 30 * 86_400_000;

/** Whether the tool's last drill is older than the policy allows, or failed. */
export async function isDrillDue(core: EngineCore, { tool }: ToolManifest): Promise<boolean> {
  const max_age_ms = core.rules().policy.undo?.max_age_ms ?? DUE_AFTER_MS;
  const proof = await proofOfTool(core, tool);
  return proof !== null && unprovenReason(proof, core.env.now(), max_age_ms) !== null;
}
