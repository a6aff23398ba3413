/** Reading manifests, policy and keys again. */
import * as z from "zod";
import { conflict, messageOf, ProblemsError } from "../../kernel/errors.ts";
import { announce } from "../app.ts";
import { operation } from "../door/operation.ts";
import { noFields } from "./schemas.ts";

export const reload = operation({
  id: "reload",
  summary: "Read manifests, policy and keys again; the old ones stay when they do not load",
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
    announce(core.listeners, [record]);
    return loaded;
  },
});

/** A reload that fails is a conflict between what is saved and what can be in force. */
export function refuse(error: unknown): never {
  const problems = error instanceof ProblemsError ? error.problems.join("; ") : messageOf(error);
  throw conflict(
    "config_not_loaded",
    `the saved configuration did not load, and the old one stays in force: ${problems}`,
  );
}
