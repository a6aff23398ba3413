/**
 * Verifies signed approvals in the hook, before a call that the approvers file names. A guard lives as long as its
 * process. The code that verifies is loaded on first use, because most hooks need none.
 */
import { join } from "node:path";
import type { ApproversGuard } from "../auth/approvers-guard.ts";
import { messageOf } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { PartMaker, ResidentPart, ResidentServices } from "./resident/services.ts";
import { type HookDecision, readSignatures } from "./service.ts";
import type { HookSettings } from "./settings.ts";

interface ApproverGuards extends ResidentPart {
  of(file: string, folder: string): Promise<ApproversGuard>;
}

const createGuards: PartMaker<ApproverGuards> = () => {
  const opened = new Map<string, Promise<ApproversGuard>>();
  return {
    of(file, folder) {
      const key = JSON.stringify([file, folder]);
      const guard = opened.get(key) ?? openGuard(file, folder);
      opened.set(key, guard);
      // A file that is missing now may be there for the next call.
      guard.catch(() => opened.delete(key));
      return guard;
    },
  };
};

async function openGuard(file: string, folder: string): Promise<ApproversGuard> {
  const { ApproversGuard: Guard } = await import("../auth/approvers-guard.ts");
  return Guard.open({
    file,
    used: join(folder, "used-approvals"),
    env: { now: () => Date.now() },
    warn: (message, fields) => process.emitWarning(`${message}: ${JSON.stringify(fields ?? {})}`),
  });
}

interface GuardedCall {
  tool: string;
  args: object;
}

/** Why the approvers file does not permit the call, or null. A file that cannot be used permits none. */
export async function signatureObjection(
  services: ResidentServices,
  settings: HookSettings,
  { run_id, approval_id }: HookDecision,
  { tool, args }: GuardedCall,
): Promise<string | null> {
  const { approvers, folder } = settings;
  if (approvers === undefined) return null;
  try {
    const guard = await services.part(createGuards).of(approvers, folder);
    const evidence = async () =>
      typeof approval_id === "string" ? readSignatures(settings, approval_id) : undefined;
    return await guard.objection({ run_id, tool, args: args as JsonValue }, evidence);
  } catch (error) {
    return `${tool} was not called: ${messageOf(error)}`;
  }
}
