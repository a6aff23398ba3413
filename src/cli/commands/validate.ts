/** `svc validate <path>`: checks manifests and lists one error per entry. */
import { validateManifests } from "../../config/manifest-source.ts";
import { looseEnds } from "../../model/manifest/cross-check.ts";
import { globalOptions, type Register } from "../context.ts";
import { printable } from "../io.ts";
import { withEgress } from "../with-egress.ts";

export const registerValidate: Register = (program, context) => {
  globalOptions(
    program.command("validate <path>").description("check tool manifests (a file, a folder or a URL)"),
  ).action(async (path: string, flags: Record<string, unknown>) => {
    const settings = context.settings(flags);
    const { manifests, count, errors } = await withEgress(settings, path, (egress) =>
      validateManifests(path, egress),
    );
    if (manifests === null) {
      for (const error of errors) context.io.err(printable(error));
      return context.done(1);
    }
    if (settings.policy !== null) {
      const { warnMisfits } = await import("../misfits.ts");
      await warnMisfits(context.io, settings, { manifests });
    }
    for (const warning of looseEnds(manifests)) context.io.err(`warning: ${printable(warning)}`);
    context.io.out(`ok: ${count} tool manifests valid`);
  });
};
