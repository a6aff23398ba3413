/** `svc anchor verify --checkpoint`: a ledger here, or a server's, held against checkpoints that people kept. */
import { resolve } from "node:path";
import { ledgerCheckpoint, ledgerConsistency } from "../../app/operations/checkpoints.ts";
import { readTextFileSync } from "../../config/files.ts";
import { readTrustedKeys, type TrustedKeys } from "../../evidence/key-files.ts";
import { parseCheckpoint } from "../../evidence/witness/checkpoint.ts";
import {
  type CheckpointFile,
  type CheckpointFinding,
  type HoldAgainst,
  readCheckpoints,
  rewritten,
  truncated,
  verifyCheckpoints,
} from "../../evidence/witness/kept-checkpoints.ts";
import { SvcError } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { isConsistent } from "../../ledger/tree.ts";
import type { Context, Flags } from "../context.ts";
import { type Door, partsOf } from "../door.ts";
import { columns, printable } from "../io.ts";
import { verifyHere } from "./verify.ts";

const MAX_BYTES = 65_536;

type KeptFlags = Flags & { pub?: string[]; checkpoint?: string[] };

export async function againstCheckpoints(context: Context, flags: KeptFlags): Promise<CheckpointFinding[]> {
  const { cwd } = context.io;
  const trusted = readTrustedKeys((flags.pub ?? []).map((path) => resolve(cwd, path)));
  const files = (flags.checkpoint ?? []).map((name): CheckpointFile => {
    const path = resolve(cwd, name);
    return { name, text: readTextFileSync(path, MAX_BYTES) };
  });
  if (context.isRemote(flags))
    return context.withDoor(flags, async (door) =>
      verifyCheckpoints(files, trusted, await againstServer(door, trusted)),
    );
  return verifyCheckpoints(files, trusted, await againstData(context, flags, files));
}

/** The ledger on this machine: read whole, with its root at each size that a checkpoint names. */
async function againstData(
  context: Context,
  flags: Flags,
  files: readonly CheckpointFile[],
): Promise<HoldAgainst> {
  const sizes = readCheckpoints(files).flatMap(({ checkpoint }) =>
    typeof checkpoint === "string" ? [] : [checkpoint.size],
  );
  const { check } = await verifyHere(context, flags, { sizes: new Set(sizes) });
  const { first_bad, records, moments } = check;
  return async ({ size, root }) => {
    if (first_bad !== null)
      return `the ledger does not verify at record ${first_bad.seq}: ${first_bad.problem}`;
    if (size > records) return truncated(size, records);
    return moments.get(size)!.root === root ? undefined : rewritten(size);
  };
}

/** A server: what it shows now, and its proof that this continues each checkpoint. */
async function againstServer(door: Door, trusted: TrustedKeys): Promise<HoldAgainst> {
  let text = "";
  for await (const part of partsOf(await door.perform(ledgerCheckpoint, {}))) text += part;
  const now = parseCheckpoint(text);
  if (typeof now === "string")
    throw new SvcError("corrupt", `the server's checkpoint cannot be read: ${now}`);
  const [shown] = await verifyCheckpoints([{ name: "the server", text }], trusted, async () => undefined);
  if (shown?.problem != null)
    throw new SvcError("corrupt", `the server's checkpoint does not hold: ${shown.problem}`);
  return async (head) => {
    if (head.size > now.size) return truncated(head.size, now.size);
    const { proof } = await door.perform(ledgerConsistency, { from: head.size, to: now.size });
    return isConsistent(head, now, proof) ? undefined : rewritten(head.size);
  };
}

export function describeCheckpoints(findings: readonly CheckpointFinding[]): string[] {
  const rows = findings.map(({ file, size, problem }) => [
    printable(file),
    size === null ? "? records" : plural(size, "record"),
    problem === null ? "ok" : `INVALID: ${printable(problem)}`,
  ]);
  const bad = findings.filter(({ problem }) => problem !== null).length;
  if (bad > 0)
    return [
      ...columns(rows),
      `INVALID: ${bad} of ${plural(findings.length, "checkpoint")} ${bad === 1 ? "does" : "do"} not hold`,
    ];
  const lines = [
    ...columns(rows),
    `ok: ${plural(findings.length, "checkpoint")} ${findings.length === 1 ? "holds" : "hold"}`,
  ];
  if (findings.some(({ trust }) => trust === "unchecked"))
    lines.push("  not checked: the signatures, for want of a trusted key (--pub <file>)");
  return lines;
}
