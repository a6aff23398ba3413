/** Settings of the governed proxy: the hosts that pass without a question. */
import * as z from "zod";
import { settingRow, textSchema } from "../setting-row.ts";

const hostName = textSchema
  .max(253)
  .refine((text) => /^[A-Za-z0-9_.:-]+$/.test(text) && !/^[^:]*:[^:]*$/.test(text), {
    message: "is one literal host or address, without scheme, port, path or glob",
  })
  .transform((text) => text.toLowerCase());

export const PROXY_ROWS = {
  allow_hosts: settingRow<string[]>({
    type: "list of hosts",
    schema: z.array(hostName).max(1_000),
    default: [],
    about:
      "Hosts that `svc proxy` and `svc rollback` reach without a question, private ones included. Write each literally.",
  }),
} as const;
