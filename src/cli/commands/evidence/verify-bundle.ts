/** `svc verify-bundle <file>`: verifies a signed bundle and prints what was checked and what was not. */
import { resolve } from "node:path";
import { parseApprovers } from "../../../auth/approvers.ts";
import { readTextFileSync } from "../../../config/files.ts";
import type { SignerReport } from "../../../evidence/bundles/check-carried.ts";
import { type BundleReport, verifyBundle } from "../../../evidence/bundles/verify-bundle.ts";
import { readTrustedKeys } from "../../../evidence/key-files.ts";
import { NO_WITNESS_REQUIREMENT, type WitnessRequirement } from "../../../evidence/witness/requirements.ts";
import { readWitnessKeys } from "../../../evidence/witness/witness-keys.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";

export const collectValues = (value: string, before: string[] = []): string[] => [...before, value];

const NOT_TRUSTED =
  "the key was not checked against a trusted key (--pub <file>): the signature shows only that nothing was changed since it was made, not who made it";

interface VerifyFlags {
  approvers?: string;
  pub?: string[];
  witness?: string[];
  quorum?: string;
  json?: boolean;
}

function witnessDemand({ witness, quorum }: VerifyFlags, at: (path: string) => string): WitnessRequirement {
  if (witness === undefined) {
    if (quorum !== undefined)
      throw invalidError("--quorum: requires the witnesses: name each with --witness <key>");
    return NO_WITNESS_REQUIREMENT;
  }
  const witnesses = readWitnessKeys(witness, at);
  const count = quorum === undefined ? witnesses.length : Number(quorum);
  if (!Number.isInteger(count) || count < 1 || count > witnesses.length)
    throw invalidError(`--quorum: must be a whole number from 1 to ${witnesses.length}, the witnesses given`);
  return { witnesses, quorum: count };
}

export const registerVerifyBundle: RegisterCommand = (program, context) => {
  const { io } = context;
  program
    .command("verify-bundle <file>")
    .description("Verify a signed bundle")
    .option("--pub <file>", "a public key you trust; repeatable", collectValues)
    .option(
      "--witness <key>",
      "a required witness: its verifier key, or a file with its key; repeatable",
      collectValues,
    )
    .option("--quorum <n>", "how many of the witnesses must have cosigned (default: all)")
    .option("--approvers <file>", "the approvers you know: says who signed what")
    .option("--json", "print the result as JSON")
    .action(async (file: string, flags: VerifyFlags) => {
      const at = (path: string) => resolve(io.cwd, path);
      const trusted = readTrustedKeys((flags.pub ?? []).map(at));
      const approvers =
        flags.approvers === undefined
          ? null
          : parseApprovers(readTextFileSync(at(flags.approvers)), flags.approvers);
      const verdict = await verifyBundle(at(file), trusted, { ...witnessDemand(flags, at), approvers });
      if (!verdict.ok) context.done(1);
      else if (hasDoubt(verdict.report)) context.done(2);
      if (flags.json) return io.out(JSON.stringify(verdict));
      if (!verdict.ok) return io.out(`INVALID: ${escapeControls(verdict.problem)}`);
      for (const line of bundleLines(verdict.report)) io.out(line);
    });
};

function bundleLines(report: BundleReport): string[] {
  const { kind, run_id, count, first_seq, last_seq, head, key_id, trust } = report;
  const what = kind === "ledger" ? "the whole ledger" : `run ${escapeControls(run_id ?? "")}`;
  const span = count === 0 ? "" : `, records ${first_seq} to ${last_seq} of the ledger`;
  const lines = [
    `ok: a bundle of ${what}: ${formatCountOf(count, "record")}${span}`,
    `  exported:    ${new Date(report.exported_ms).toISOString()}, when the ledger had ${formatCountOf(report.tree_size, "record")} and the head ${head}`,
  ];
  if (kind === "ledger") {
    lines.push(
      "  checked:     every record's hash, the chain from the first record to the head, the tree, the signed count",
    );
  } else {
    lines.push(
      "  checked:     every record's hash, links between neighbours, an inclusion proof for each record,",
    );
    lines.push("               the run's own numbering, the signed count");
  }
  lines.push(
    `  checked:     the signature of key ${key_id}${trust === "trusted" ? ", which you trust" : ""}`,
  );
  if (kind === "run" && !report.head_tied) {
    lines.push(
      "  not checked: that the head is that of the ledger's last record, which is not one of this run's",
    );
  }
  lines.push(...describeWitnesses(report), ...describeSigners(report));
  if (trust !== "trusted") lines.push(`  not checked: ${NOT_TRUSTED}`);
  return lines;
}

function describeWitnesses({ witnesses: { by, covered, checkpoints } }: BundleReport): string[] {
  const lines = by.map(
    ({ name, size, seconds }) =>
      `  checked:     ${escapeControls(name)} cosigned the first ${size === 1 ? "record" : formatCountOf(size, "record")} at ${isoSeconds(seconds)}`,
  );
  if (by.length > 0 && covered > 0)
    lines.push(`  checked:     every record was seen by enough witnesses, up to record ${covered - 1}`);
  else if (checkpoints > 0)
    lines.push(
      "  not checked: the witnesses' cosignatures, because their keys were not given (--witness <key>)",
    );
  return lines;
}

/** True if the approvers file does not account for every signature. */
const hasDoubt = ({ signatures: { known, signers, deleted } }: BundleReport): boolean =>
  known && (deleted > 0 || signers.some(({ doubt }) => doubt !== null));

function describeSigners({ signatures: { known, signers, deleted } }: BundleReport): string[] {
  const lines: string[] = [];
  const count = formatCountOf(signers.length, "signature");
  if (signers.length > 0) lines.push(`  checked:     ${count} of approvals, each over what its records say`);
  if (known) lines.push(...signers.map(describeSigner));
  else if (signers.length > 0)
    lines.push("  not checked: whose passkeys signed, because no approvers were given (--approvers <file>)");
  if (deleted > 0)
    lines.push(
      `  not checked: ${formatCountOf(deleted, "signature")} of runs that retention deleted; the runs' archives hold them`,
    );
  return lines;
}

function describeSigner(signer: SignerReport): string {
  const { by, kind, decision, id, tool, run_id, code, records, doubt } = signer;
  const what = [decision, kind, tool, id, run_id && `run ${run_id}`].filter((part) => part !== null);
  const where = records.map((seq) => `record ${seq}`).join(", ");
  const text = `${by} signed with ${code}: ${what.join(", ")} (${where})`;
  return escapeControls(doubt === null ? `  checked:     ${text}` : `  UNKNOWN:     ${text}: ${doubt}`);
}

function isoSeconds(seconds: number): string {
  const at = new Date(seconds * 1_000);
  return Number.isNaN(at.getTime()) ? `${seconds} s` : at.toISOString();
}
