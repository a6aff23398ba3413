/** `svc verify-bundle <file>`: checks a signed bundle, and says what its signature does and does not prove. */
import { resolve } from "node:path";
import { readTrustedKeys } from "../../evidence/key-files.ts";
import { type BundleReport, verifyBundle } from "../../evidence/verify-bundle.ts";
import type { Register } from "../context.ts";
import { inert } from "../io.ts";

export const collect = (value: string, before: string[] = []): string[] => [...before, value];

export const NOT_TRUSTED =
  "the key was not checked against a trusted key (--pub <file>): the signature shows only that nothing was changed since it was made, not who made it";

export const registerVerifyBundle: Register = (program, context) => {
  const { io } = context;
  program
    .command("verify-bundle <file>")
    .description("check a signed bundle")
    .option("--pub <file>", "a public key you trust; may be given more than once", collect)
    .option("--json", "print the result as JSON")
    .action(async (file: string, flags: { pub?: string[]; json?: boolean }) => {
      const trusted = readTrustedKeys((flags.pub ?? []).map((path) => resolve(io.cwd, path)));
      const verdict = await verifyBundle(resolve(io.cwd, file), trusted);
      if (!verdict.ok) context.done(1);
      if (flags.json) return io.out(JSON.stringify(verdict));
      if (!verdict.ok) return io.out(`INVALID: ${inert(verdict.problem)}`);
      for (const line of describe(verdict.report)) io.out(line);
    });
};

export function describe(report: BundleReport): string[] {
  const { kind, run_id, count, first_seq, last_seq, head, key_id, trust } = report;
  const what = kind === "ledger" ? "the whole ledger" : `run ${inert(run_id ?? "")}`;
  const span = count === 0 ? "" : `, records ${first_seq} to ${last_seq} of the ledger`;
  const lines = [
    `ok: a bundle of ${what}: ${count} records${span}`,
    `  exported:    ${new Date(report.exported_ms).toISOString()}, when the ledger had ${report.tree_size} records and the head ${head}`,
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
  if (trust !== "trusted") lines.push(`  not checked: ${NOT_TRUSTED}`);
  return lines;
}
