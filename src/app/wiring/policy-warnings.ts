/** Logs what can never take effect in the policy in force: once at the start, and once for each change of the rules. */
import { messageOf } from "../../kernel/errors.ts";
import type { App } from "../app.ts";
import { labelsOf } from "../operations/simulate/jobs.ts";
import { readOwn } from "../sandbox/reader.ts";

export class PolicyWarnings {
  private readonly app: Pick<App, "core" | "log">;
  private seen: readonly unknown[] = [];

  constructor(app: Pick<App, "core" | "log">) {
    this.app = app;
  }

  /** A warning never changes a decision, and a policy that cannot be looked at is one line in the log. */
  async look(): Promise<void> {
    const { core, log } = this.app;
    const { policy, manifests } = core.rules();
    if (this.seen[0] === policy && this.seen[1] === manifests) return;
    this.seen = [policy, manifests];
    try {
      const warnings = await readOwn({
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
