/** `svc anchor verify --checkpoint`: checks a local or remote ledger against stored checkpoints. */
import { resolve } from "node:path";
import { readTextFileSync } from "../../../config/files.ts";
import { readTrustedKeys, type TrustedKeys } from "../../../evidence/key-files.ts";
import { parseCheckpoint } from "../../../evidence/witness/checkpoint.ts";
import {
  type CheckConsistency,
  type CheckpointFile,
  type CheckpointFinding,
  readCheckpoints,
  rewrittenText,
  truncatedText,
  verifyCheckpoints,
} from "../../../evidence/witness/verify-checkpoints.ts";
import { SvcError } from "../../../kernel/errors.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { isConsistent } from "../../../ledger/merkle-tree.ts";
import { ledgerCheckpoint, ledgerConsistency } from "../../../operations/evidence/checkpoints.ts";
import type { CommandContext, CommandFlags } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import { documentChunks, type OperationClient } from "../../operation-client.ts";
import { verifyLocalLedger } from "./verify.ts";

const MAX_BYTES = 65_536;

type KeptFlags = CommandFlags & { pub?: string[]; checkpoint?: string[] };

export async function verifyAgainstCheckpoints(
  context: CommandContext,
  flags: KeptFlags,
): Promise<CheckpointFinding[]> {
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

/** Reads the local ledger and computes its root at the size of each checkpoint. */
async function againstData(
  context: CommandContext,
  flags: CommandFlags,
  files: readonly CheckpointFile[],
): Promise<CheckConsistency> {
  const sizes = readCheckpoints(files).flatMap(({ checkpoint }) =>
    typeof checkpoint === "string" ? [] : [checkpoint.size],
  );
  const { check } = await verifyLocalLedger(context, flags, { sizes: new Set(sizes) });
  const { first_bad, records, moments } = check;
  return async ({ size, root }) => {
    if (first_bad !== null)
      return `the ledger does not verify at record ${first_bad.seq}: ${first_bad.problem}`;
    if (size > records) return truncatedText(size, records);
    return moments.get(size)!.root === root ? undefined : rewrittenText(size);
  };
}

/** Asks the server for its current checkpoint and for proofs that it continues the stored ones. */
async function againstServer(door: OperationClient, trusted: TrustedKeys): Promise<CheckConsistency> {
  let text = "";
  for await (const part of documentChunks(await door.perform(ledgerCheckpoint, {}))) text += part;
  const now = parseCheckpoint(text);
  if (typeof now === "string")
    throw new SvcError("corrupt", `the server's checkpoint cannot be read: ${now}`);
  const [shown] = await verifyCheckpoints([{ name: "the server", text }], trusted, async () => undefined);
  if (shown?.problem != null)
    throw new SvcError("corrupt", `the server's checkpoint is not valid: ${shown.problem}`);
  return async (head) => {
    if (head.size > now.size) return truncatedText(head.size, now.size);
    const { proof } = await door.perform(ledgerConsistency, { from: head.size, to: now.size });
    return isConsistent(head, now, proof) ? undefined : rewrittenText(head.size);
  };
}

export function describeCheckpoints(findings: readonly CheckpointFinding[]): string[] {
  const rows = findings.map(({ file, size, problem }) => [
    escapeControls(file),
    size === null ? "? records" : formatCountOf(size, "record"),
    problem === null ? "ok" : `INVALID: ${escapeControls(problem)}`,
  ]);
  const bad = findings.filter(({ problem }) => problem !== null).length;
  if (bad > 0)
    return [
      ...alignColumns(rows),
      `INVALID: ${bad} of ${formatCountOf(findings.length, "checkpoint")} ${bad === 1 ? "does" : "do"} not hold`,
    ];
  const lines = [
    ...alignColumns(rows),
    `ok: ${formatCountOf(findings.length, "checkpoint")} ${findings.length === 1 ? "holds" : "hold"}`,
  ];
  if (findings.some(({ trust }) => trust === "unchecked"))
    lines.push("  not checked: the signatures, because no trusted key was given (--pub <file>)");
  return lines;
}
