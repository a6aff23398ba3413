/** Reloads manifests, policy and keys. */
import * as z from "zod";
import { conflictError, messageOf, ProblemsError } from "../kernel/errors.ts";
import { announceRecords } from "./app.ts";
import { defineOperation } from "./pipeline/operation.ts";
import { noFields } from "./schemas.ts";

export const reloadConfiguration = defineOperation({
  id: "reload",
  summary: "Reload manifests, policy and keys; if they fail to load, the old ones stay active",
  role: "admin",
  input: noFields,
  output: z.strictObject({ manifests: z.int(), policy: z.string(), keys: z.int() }),
  errors: { conflict: "the files do not load" },
  async run({ app, principal }) {
    const loaded = await app.reload();
    const { core } = app;
    const detail = `${loaded.manifests} manifests, policy ${loaded.policy}, ${loaded.keys} keys`;
    const record = await core.store.transact({
      run: (tx) => tx.append({ event: "reloaded", actor: principal.name, ts_ms: core.env.now(), detail }),
    });
    announceRecords(core.listeners, [record]);
    return loaded;
  },
});

/** A failed reload is a conflict: the saved configuration cannot become active. */
export function throwReloadConflict(error: unknown): never {
  const problems = error instanceof ProblemsError ? error.problems.join("; ") : messageOf(error);
  throw conflictError(
    "config_not_loaded",
    `the saved configuration did not load, and the old one stays in force: ${problems}`,
  );
}
