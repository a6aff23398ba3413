/** Settings of the governed proxy: the hosts that pass without approval, and the credentials that it adds. */
import * as z from "zod";
import { splitCommand } from "../../child-process/split-command.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import {
  durationRow,
  locatePath,
  numberRow,
  pathSchema,
  settingRow,
  settingSection,
  textSchema,
} from "../setting-row.ts";

const hostName = textSchema
  .max(253)
  .refine((text) => /^[A-Za-z0-9_.:-]+$/.test(text) && !/^[^:]*:[^:]*$/.test(text), {
    message: "is one literal host or address, without scheme, port, path or glob",
  })
  .transform((text) => text.toLowerCase());

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PLAIN = /^[\x20-\x7e]*$/;

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not the name of a variable");

/** Where a credential's value comes from. */
const source = z.union([
  z.strictObject({ env: variable }),
  z.strictObject({ file: pathSchema }),
  z.strictObject({
    command: z
      .union([z.array(textSchema).min(1), textSchema.transform((text) => splitCommand(text))])
      .refine((words) => words.length > 0, "names no program"),
  }),
]);

const credentialSchema = z
  .strictObject({
    name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'is letters, digits, "-" and "_"'),
    hosts: z
      .array(
        textSchema
          .regex(
            /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::\d{1,5})?$/,
            "is one literal host, with or without a port",
          )
          .transform((text) => text.toLowerCase()),
      )
      .min(1)
      .max(100),
    header: z
      .strictObject({
        name: z.string().regex(HEADER_NAME, "is not a header name"),
        prefix: z.string().regex(PLAIN, "must hold plain characters").default(""),
      })
      .optional(),
    query: textSchema.optional(),
    basic: z
      .strictObject({
        user: z.string().regex(/^[^:\p{Cc}]+$/u, "must not hold a colon or control characters"),
      })
      .optional(),
    aws_sigv4: z.strictObject({ region: textSchema, service: textSchema }).optional(),
    from: source,
    placeholders: z
      .array(variable)
      .max(20)
      .optional()
      .describe("Variables that hold a placeholder inside svc run, so that the agent's tools start."),
  })
  .superRefine((credential, context) => {
    const kinds = KINDS.filter((kind) => credential[kind] !== undefined);
    if (kinds.length !== 1)
      context.addIssue({
        code: "custom",
        message: `needs one of ${KINDS.join(", ")}, and has ${kinds.length}`,
      });
  });

const KINDS = ["header", "query", "basic", "aws_sigv4"] as const;

type CredentialPlace =
  | { header: { name: string; prefix: string } }
  | { query: string }
  | { basic: { user: string } }
  | { aws_sigv4: { region: string; service: string } };

/** A credential that the proxy adds: where to, how, and where its value comes from. */
export type CredentialSpec = {
  name: string;
  hosts: string[];
  from: { env: string } | { file: string } | { command: string[] };
  /** Variables that hold a placeholder inside `svc run`. */
  placeholders?: string[] | undefined;
} & CredentialPlace;

const credentialsSchema = z
  .array(credentialSchema)
  .max(1_000)
  .superRefine((list, context) => {
    for (const [i, { name }] of list.entries())
      if (list.findIndex((other) => other.name === name) < i)
        context.addIssue({ code: "custom", path: [i, "name"], message: "another credential has this name" });
  })
  .transform((list) => list as CredentialSpec[]);

export const PROXY_ROWS = {
  proxy: settingSection("Time limits of a request through the governed proxy, and of an undo over HTTP.", {
    idle: durationRow(SERVICE_LIMITS.exchange_idle_ms, 100, {
      about: "Longest silence of host or client: while connecting, before the answer, or within a body.",
    }),
    total: durationRow(SERVICE_LIMITS.exchange_total_ms, 100, {
      about: "Longest request, from its first byte to the end of its answer.",
    }),
  }),
  run: settingSection("Limits of a command that `svc run` starts.", {
    processes: numberRow(z.number().int().min(16).max(1_000_000), SERVICE_LIMITS.run_processes, {
      about: "Most processes and threads at a time.",
    }),
    memory_mb: numberRow(z.number().int().min(64).max(16_777_216), SERVICE_LIMITS.run_memory_mb, {
      about: "Most memory, and never more than three quarters of the machine's.",
    }),
  }),
  credentials: settingRow<CredentialSpec[]>({
    type: "list of credentials",
    schema: credentialsSchema,
    default: [],
    about:
      "Credentials that the proxy adds: `{name, hosts, from}` with `header`, `query`, `basic` or `aws_sigv4`. `from` is `{env}`, `{file}` or `{command}`. `placeholders` lists variables.",
    locate: (list, base) =>
      list.map((one) =>
        "file" in one.from ? { ...one, from: { file: locatePath(one.from.file, base) } } : one,
      ),
  }),
  allow_hosts: settingRow<string[]>({
    type: "list of hosts",
    schema: z.array(hostName).max(1_000),
    default: [],
    about:
      "Hosts that `svc proxy` and `svc rollback` can reach without approval, private ones included. Write each literally.",
  }),
} as const;
