/** `svc validate <path>`: validates manifests and prints one error per entry. */
import { validateManifests } from "../../../config/manifest-source.ts";
import { lintManifests } from "../../../rules/manifest/cross-check.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { withEgress } from "../../with-egress.ts";

export const registerValidate: RegisterCommand = (program, context) => {
  globalOptions(
    program
      .command("validate")
      .argument("<path>", "a file, a directory or a URL")
      .description("Check tool manifests"),
  ).action(async (path: string, flags: Record<string, unknown>) => {
    const settings = context.settings(flags);
    const { manifests, count, errors } = await withEgress(settings, path, (egress) =>
      validateManifests(path, egress),
    );
    if (manifests === null) {
      for (const error of errors) context.io.err(escapeControls(error));
      return context.done(1);
    }
    if (settings.policy !== null) {
      const { warnLintProblems } = await import("./lint-warnings.ts");
      await warnLintProblems(context.io, settings, { manifests });
    }
    for (const warning of lintManifests(manifests)) context.io.err(`warning: ${escapeControls(warning)}`);
    context.io.out(`ok: ${count} tool manifests valid`);
  });
};
