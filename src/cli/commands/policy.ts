/** `svc policy check|test <file>`: validates a policy, runs its own tests. */
import { readTextFile } from "../../config/files.ts";
import { loadManifests } from "../../config/manifest-source.ts";
import { createEgress } from "../../egress/egress.ts";
import { toolLabels } from "../../model/manifest/labels.ts";
import { compilePolicy } from "../../model/policy/compile.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import { runPolicyTests } from "../../model/policy/tests.ts";
import { warnUnseen } from "../card-warnings.ts";
import { type Context, globalOptions, type Register } from "../context.ts";
import { inert } from "../io.ts";

export const registerPolicy: Register = (program, context) => {
  const { io } = context;
  const group = program.command("policy").description("policies");

  globalOptions(
    group.command("check <file>").description("validate a policy; lists every problem with its line"),
  ).action(async (file: string, flags: Record<string, unknown>) => {
    const doc = loadPolicy(await readTextFile(file), file);
    await warnUnseen(io, context.settings(flags), { policy: doc });
    io.out(`ok: ${doc.rules?.length ?? 0} rules, ${doc.tests?.length ?? 0} tests`);
  });

  globalOptions(group.command("test <file>").description("run the tests that a policy carries")).action(
    async (file: string, flags: Record<string, unknown>) => {
      const policy = compilePolicy(loadPolicy(await readTextFile(file), file));
      const results = runPolicyTests(policy, await manifestFacts(context, flags));
      for (const result of results) {
        if (result.ok) io.out(`ok  ${inert(result.name)}`);
        else io.out(`FAIL ${inert(result.name)}: expected ${result.expected}, got ${result.got}`);
      }
      const failed = results.filter((result) => !result.ok).length;
      io.out(
        failed === 0 ? `${results.length} passed` : `${results.length - failed} passed, ${failed} failed`,
      );
      if (failed > 0) context.done(1);
    },
  );
};

/** Rules may match on effect and data class, which only manifests know; without any, those are unknown. */
async function manifestFacts(context: Context, flags: Record<string, unknown>) {
  const settings = context.settings(flags);
  const egress = createEgress(settings.egress, {});
  try {
    const manifests = await loadManifests({ path: settings.manifests, egress });
    return (tool: string) => {
      const found = manifests.active(tool);
      return found === undefined ? null : toolLabels(found);
    };
  } finally {
    await egress.close();
  }
}
