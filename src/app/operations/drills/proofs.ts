/** What drills say of tools, as it is kept: one document a tool. */
import type { Core } from "../../../engine/core.ts";
import type { Manifest } from "../../../model/manifest/types.ts";
import { type DrillDoc, type Proof, proofOf, proofWords, unprovenBecause } from "../../../model/proof.ts";

/** More tools than this are not drilled in one place. */
const MOST = 10_000;

export async function allDrills({ store }: Core): Promise<DrillDoc[]> {
  const rows = await store.list("drills", { order: "desc", limit: MOST });
  return rows.map(({ doc }) => doc);
}

/** The proof of the tool's undo as its manifest in force declares it; null where there is no undo to prove. */
async function proofOfTool(core: Core, tool: string): Promise<Proof | null> {
  const { manifests } = core.rules();
  const manifest = manifests.active(tool);
  if (manifest === undefined || manifest.compensation === null) return null;
  return proofOf(await core.store.get("drills", tool), manifests.hashOf(manifest));
}

/** The same in words, for plans, cards and pages. */
export async function proofWordsOf(core: Core, tool: string): Promise<string | null> {
  const proof = await proofOfTool(core, tool);
  return proof === null ? null : proofWords(proof);
}

/** Tools that declare a drill, in the order of the manifests. */
export function drillable(core: Core): Manifest[] {
  const { manifests } = core.rules();
  const tools = new Set(manifests.all.map(({ tool }) => tool));
  return [...tools].flatMap((tool) => {
    const manifest = manifests.active(tool);
    return manifest?.drill === undefined ? [] : [manifest];
  });
}

const DUE_AFTER_MS = 30 * 86_400_000;

/** Whether the tool has to be drilled again, by the age that the policy allows. */
export async function isDue(core: Core, { tool }: Manifest): Promise<boolean> {
  const max_age_ms = core.rules().policy.undo?.max_age_ms ?? DUE_AFTER_MS;
  const proof = await proofOfTool(core, tool);
  return proof !== null && unprovenBecause(proof, core.env.now(), max_age_ms) !== null;
}
