/** Reading manifests, policy and keys again. */
import { z } from "zod";
import { announce } from "../app.ts";
import { operation } from "../operation.ts";
import { emptyQuery, noParams } from "../schemas.ts";

export const reload = operation({
  id: "reload",
  summary: "Read manifests, policy and keys again; the old ones stay when they do not load",
  method: "POST",
  path: "/v1/reload",
  role: "admin",
  params: noParams,
  query: emptyQuery,
  body: z.strictObject({}),
  output: z.strictObject({ manifests: z.int(), policy: z.string(), keys: z.int() }),
  status: 200,
  errors: { 409: "the files do not load" },
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
