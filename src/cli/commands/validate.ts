/** `svc validate <path>`: checks manifests and lists one error per entry. */
import { loadManifests, validateManifests } from "../../config/manifest-source.ts";
import { createEgress } from "../../egress/egress.ts";
import { looseEnds } from "../../model/manifest/cross-check.ts";
import { globalOptions, type Register } from "../context.ts";
import { printable } from "../io.ts";
import { warnMisfits } from "../misfits.ts";

export const registerValidate: Register = (program, context) => {
  globalOptions(
    program.command("validate <path>").description("check tool manifests (a file, a folder or a URL)"),
  ).action(async (path: string, flags: Record<string, unknown>) => {
    const settings = context.settings(flags);
    const egress = createEgress(settings.egress, {});
    try {
      const { ok, count, errors } = await validateManifests(path, egress);
      if (ok) {
        await warnMisfits(context.io, settings, { manifests: path });
        for (const warning of looseEnds(await loadManifests({ path, egress })))
          context.io.err(`warning: ${printable(warning)}`);
        return context.io.out(`ok: ${count} tool manifests valid`);
      }
      for (const error of errors) context.io.err(printable(error));
      context.done(1);
    } finally {
      await egress.close();
    }
  });
};
