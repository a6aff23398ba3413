/** Logs entries of the active policy that can never take effect: at the start, and after each change of the rules. */
import { messageOf } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import { labelsOf } from "../operations/simulate/jobs.ts";
import { parseOwn } from "../operations/worker/parse.ts";

export class PolicyWarnings {
  private readonly app: Pick<ServiceApp, "core" | "log">;
  private seen: readonly unknown[] = [];

  constructor(app: Pick<ServiceApp, "core" | "log">) {
    this.app = app;
  }

  /** Warnings never change a decision. If the check fails, that is one line in the log. */
  async look(): Promise<void> {
    const { core, log } = this.app;
    const { policy, manifests } = core.rules();
    if (this.seen[0] === policy && this.seen[1] === manifests) return;
    this.seen = [policy, manifests];
    try {
      const warnings = await parseOwn({
        read: "policy_warnings",
        policy: { doc: policy.doc },
        labels: labelsOf(manifests),
        now_ms: core.env.now(),
      });
      for (const warning of warnings) log.warn("the policy has an entry without effect", { warning });
    } catch (error) {
      log.warn("the policy could not be checked for entries without effect", { error: messageOf(error) });
    }
  }
}
