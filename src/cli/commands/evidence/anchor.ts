/** `svc anchor publish|verify|checkpoint`: publishes the ledger head and checks the ledger against published heads. */

import { resolve } from "node:path";
import type { AnchorSink } from "../../../config/sections/operations.ts";
import { createEgress } from "../../../egress/egress.ts";
import {
  type AnchorFinding,
  type AnchorsVerdict,
  verifyAnchors,
} from "../../../evidence/anchors/anchor-verify.ts";
import { anchorNow, type PublishedAnchor } from "../../../evidence/anchors/anchoring.ts";
import { readTrustedKeys } from "../../../evidence/key-files.ts";
import { invalidError, SvcError } from "../../../kernel/errors.ts";
import { fromJson } from "../../../kernel/json/json.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { publishAnchor } from "../../../operations/evidence/anchors.ts";
import { ledgerCheckpoint } from "../../../operations/evidence/checkpoints.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import { documentChunks } from "../../operation-client.ts";
import { describeCheckpoints, verifyAgainstCheckpoints } from "./anchor-checkpoints.ts";
import { signingKey } from "./bundle.ts";
import { openLedgerStore, verifyLocalLedger } from "./verify.ts";
import { collectValues } from "./verify-bundle.ts";

type PublishFlags = CommandFlags & { file?: string[]; webhook?: string[]; secret?: string; key?: string };

export const registerAnchor: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("anchor").description("Publish and verify anchors");

  globalOptions(group.command("publish").description("Publish an anchor to the given or configured sinks"))
    .option("--file <path>", "append the anchor to this file; repeatable", collectValues)
    .option("--webhook <url>", "post the anchor to this URL; repeatable", collectValues)
    .option("--secret <secret>", "secret that signs webhook requests")
    .option("--key <file>", "private signing key (default: SVC_SIGNING_KEY or signing_key)")
    .option("--json", "print the result as JSON")
    .action(async (flags: PublishFlags) => {
      const published = await (context.isRemote(flags) ? publishThere : publish)(context, flags);
      if (published.sinks.some(({ ok }) => !ok)) context.done(1);
      if (flags["json"]) return io.out(JSON.stringify(published));
      for (const line of describePublished(published)) io.out(line);
    });

  globalOptions(group.command("verify [file]").description("Check the ledger against anchors or checkpoints"))
    .option("--checkpoint <files...>", "checkpoint files to check against")
    .option("--pub <file>", "a public key you trust; repeatable", collectValues)
    .option("--json", "print the result as JSON")
    .action(async (file: string | undefined, flags: VerifyFlags) => {
      if (file === undefined && flags.checkpoint === undefined)
        throw invalidError("nothing to check against: pass a file of anchors, or --checkpoint <file>..");
      const anchors = file === undefined ? null : await againstAnchors(context, file, flags);
      const kept = flags.checkpoint === undefined ? null : await verifyAgainstCheckpoints(context, flags);
      const isGood =
        (anchors === null || holds(anchors)) &&
        (kept === null || kept.every(({ problem }) => problem === null));
      if (!isGood) context.done(1);
      if (flags["json"]) {
        const { records, head, first_bad } = anchors?.ledger ?? {};
        return io.out(
          JSON.stringify({
            ok: isGood,
            ...(anchors === null ? {} : { ledger: { records, head, first_bad }, anchors: anchors.findings }),
            ...(kept === null ? {} : { checkpoints: kept }),
          }),
        );
      }
      if (anchors !== null) for (const line of describe(anchors)) io.out(line);
      if (kept !== null) for (const line of describeCheckpoints(kept)) io.out(line);
    });

  globalOptions(group.command("checkpoint").description("Print a signed checkpoint of the ledger"))
    .option("--witnessed", "print the newest checkpoint that a witness cosigned")
    .action(async (flags: CommandFlags) => {
      const input = flags["witnessed"] === true ? { witnessed: true } : {};
      const text = await context.withDoor(flags, async (door) => {
        const answer = await door.perform(ledgerCheckpoint, input);
        let whole = "";
        for await (const part of documentChunks(answer)) whole += part;
        return whole;
      });
      await io.write(text);
    });
};

function describePublished({ anchor: { records, head, key_id }, sinks }: PublishedAnchor): string[] {
  const signed = key_id === undefined ? "unsigned" : `signed with key ${key_id}`;
  const rows = sinks.map(({ type, target, ok, error }) => [
    `  ${type}`,
    escapeControls(target),
    ok ? "ok" : `FAILED: ${escapeControls(error ?? "")}`,
  ]);
  return [`anchored ${records} records, head ${head}, ${signed}`, ...alignColumns(rows)];
}

type VerifyFlags = CommandFlags & { pub?: string[]; checkpoint?: string[] };

async function againstAnchors(
  context: CommandContext,
  file: string,
  flags: VerifyFlags,
): Promise<AnchorsVerdict> {
  if (context.isRemote(flags))
    throw invalidError(
      "anchors can only be checked against local data: use -d <dir>; --checkpoint works on a server",
    );
  const { cwd } = context.io;
  const trusted = readTrustedKeys((flags.pub ?? []).map((path) => resolve(cwd, path)));
  const check = async (sizes: Iterable<number>) => (await verifyLocalLedger(context, flags, { sizes })).check;
  return verifyAnchors(resolve(cwd, file), check, trusted);
}

/** Publishes to the server's sinks. Returns the result of each sink, also if some of them failed. */
async function publishThere(context: CommandContext, flags: PublishFlags): Promise<PublishedAnchor> {
  const own = (["file", "webhook", "secret", "key"] as const).find((name) => flags[name] !== undefined);
  if (own !== undefined)
    throw invalidError(
      `--${own}: a server publishes to its own sinks; use this option on local data, with -d <dir>`,
    );
  try {
    return await context.withDoor(flags, (door) => door.perform(publishAnchor, {}));
  } catch (error) {
    if (error instanceof SvcError && error.code === "delivery_failed" && error.extra?.["sinks"] !== undefined)
      return fromJson<PublishedAnchor>(error.extra);
    throw error;
  }
}

async function publish(context: CommandContext, flags: PublishFlags): Promise<PublishedAnchor> {
  const { io } = context;
  const settings = context.settings(flags);
  const given: AnchorSink[] = [
    ...(flags.file ?? []).map((path) => ({ type: "file" as const, path: resolve(io.cwd, path) })),
    ...(flags.webhook ?? []).map((url) => ({ type: "webhook" as const, url, secret: flags.secret ?? null })),
  ];
  if (flags.secret !== undefined && flags.webhook === undefined)
    throw invalidError("--secret: requires --webhook <url>");
  const sinks = given.length > 0 ? given : settings.anchor.sinks;
  if (sinks.length === 0)
    throw invalidError("no sinks: pass --file <path> or --webhook <url>, or configure anchor.sinks");
  const signing = signingKey(context, flags);
  const store = await openLedgerStore(context, flags);
  const egress = createEgress(settings.egress, {});
  try {
    const origin = signing === null ? null : (settings.ledger_origin ?? `svc/${signing.key_id}`);
    const region = settings.egress.region ?? null;
    return await anchorNow({ store, env: io.clock, egress, signing, region, origin, sinks }, "cli");
  } finally {
    await egress.close();
    await store.close();
  }
}

function holds({ ledger, findings }: AnchorsVerdict): boolean {
  return ledger.first_bad === null && findings.every(({ problem }) => problem === null);
}

function describe({ ledger, findings }: AnchorsVerdict): string[] {
  const { first_bad, records, head } = ledger;
  if (first_bad !== null)
    return [
      `INVALID: the ledger does not verify at record ${first_bad.seq}: ${escapeControls(first_bad.problem)}`,
    ];
  const lines = alignColumns(findings.map(row));
  const bad = findings.filter(({ problem }) => problem !== null).length;
  if (bad > 0)
    return [
      ...lines,
      `INVALID: ${bad} of ${formatCountOf(findings.length, "anchor")} ${bad === 1 ? "does" : "do"} not hold`,
    ];
  const hold = `${formatCountOf(findings.length, "anchor")} ${findings.length === 1 ? "holds" : "hold"}`;
  lines.push(`ok: ${hold} for the ledger of ${formatCountOf(records, "record")}, head ${head}`);
  const kinds = new Set(findings.map(({ trust }) => trust));
  if (kinds.has("unsigned"))
    lines.push("  note:        an anchor without a signature does not show who made it");
  if (kinds.has("unchecked"))
    lines.push("  not checked: the signatures, because no trusted key was given (--pub <file>)");
  return lines;
}

function row({ line, ts_ms, records, problem }: AnchorFinding): string[] {
  const when = ts_ms === null ? `line ${line}` : isoTime(ts_ms);
  const count = records === null ? "? records" : formatCountOf(records, "record");
  return [when, count, problem === null ? "ok" : `INVALID: ${escapeControls(problem)}`];
}

function isoTime(ms: number): string {
  const at = new Date(ms);
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString();
}
