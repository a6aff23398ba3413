/** `svc anchor publish|verify`: says where the ledger stands to the outside, and holds it to what was said. */
import { resolve } from "node:path";
import { publishAnchor } from "../../app/operations/anchors.ts";
import { ledgerCheckpoint } from "../../app/operations/checkpoints.ts";
import type { AnchorSink } from "../../config/sections/operations.ts";
import { createEgress } from "../../egress/egress.ts";
import { type AnchorFinding, type AnchorsVerdict, verifyAnchors } from "../../evidence/anchor-verify.ts";
import { anchorNow, type Published } from "../../evidence/anchoring.ts";
import { readTrustedKeys } from "../../evidence/key-files.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { partsOf } from "../door.ts";
import { columns, printable } from "../io.ts";
import { signingKey } from "./bundle.ts";
import { againstCheckpoints, describeCheckpoints } from "./kept-checkpoints.ts";
import { openLedgerStore, verifyHere } from "./verify.ts";
import { everyValue } from "./verify-bundle.ts";

type PublishFlags = Flags & { file?: string[]; webhook?: string[]; secret?: string; key?: string };

export const registerAnchor: Register = (program, context) => {
  const { io } = context;
  const group = program.command("anchor").description("publish the ledger's head, and hold the ledger to it");

  globalOptions(
    group.command("publish").description("publish an anchor to the sinks given, or to those configured"),
  )
    .option("--file <path>", "append the anchor to this file; may be given more than once", everyValue)
    .option("--webhook <url>", "post the anchor to this URL; may be given more than once", everyValue)
    .option("--secret <secret>", "sign what is posted to the webhooks with this secret")
    .option("--key <file>", "private signing key (default: SVC_SIGNING_KEY or signing_key)")
    .option("--json", "print the result as JSON")
    .action(async (flags: PublishFlags) => {
      const published = await (context.isRemote(flags) ? publishThere : publish)(context, flags);
      if (published.sinks.some(({ ok }) => !ok)) context.done(1);
      if (flags["json"]) return io.out(JSON.stringify(published));
      for (const line of describePublished(published)) io.out(line);
    });

  globalOptions(
    group
      .command("verify [file]")
      .description("check the ledger against anchors in a file, or against checkpoints that people kept"),
  )
    .option("--checkpoint <files...>", "checkpoints that were kept, each in a file of its own")
    .option("--pub <file>", "a public key you trust; may be given more than once", everyValue)
    .option("--json", "print the result as JSON")
    .action(async (file: string | undefined, flags: VerifyFlags) => {
      if (file === undefined && flags.checkpoint === undefined)
        throw invalid("against what? give a file of anchors, or --checkpoint <file>..");
      const anchors = file === undefined ? null : await againstAnchors(context, file, flags);
      const kept = flags.checkpoint === undefined ? null : await againstCheckpoints(context, flags);
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

  globalOptions(
    group.command("checkpoint").description("print where the ledger stands, as a signed checkpoint"),
  )
    .option("--witnessed", "the newest one that a witness cosigned")
    .action(async (flags: Flags) => {
      const input = flags["witnessed"] === true ? { witnessed: true } : {};
      const text = await context.withDoor(flags, async (door) => {
        const answer = await door.perform(ledgerCheckpoint, input);
        let whole = "";
        for await (const part of partsOf(answer)) whole += part;
        return whole;
      });
      await io.write(text);
    });
};

function describePublished({ anchor: { records, head, key_id }, sinks }: Published): string[] {
  const signed = key_id === undefined ? "unsigned" : `signed with key ${key_id}`;
  const rows = sinks.map(({ type, target, ok, error }) => [
    `  ${type}`,
    printable(target),
    ok ? "ok" : `FAILED: ${printable(error ?? "")}`,
  ]);
  return [`anchored ${records} records, head ${head}, ${signed}`, ...columns(rows)];
}

type VerifyFlags = Flags & { pub?: string[]; checkpoint?: string[] };

async function againstAnchors(context: Context, file: string, flags: VerifyFlags): Promise<AnchorsVerdict> {
  if (context.isRemote(flags))
    throw invalid(
      "anchors are held against the data themselves: run it with -d <dir>; --checkpoint works on a server",
    );
  const { cwd } = context.io;
  const trusted = readTrustedKeys((flags.pub ?? []).map((path) => resolve(cwd, path)));
  const check = async (sizes: Iterable<number>) => (await verifyHere(context, flags, { sizes })).check;
  return verifyAnchors(resolve(cwd, file), check, trusted);
}

/** On a server, to the sinks that it has; what became of each is told also where one of them failed. */
async function publishThere(context: Context, flags: PublishFlags): Promise<Published> {
  const own = (["file", "webhook", "secret", "key"] as const).find((name) => flags[name] !== undefined);
  if (own !== undefined)
    throw invalid(
      `--${own}: a server publishes to its own sinks; give it with -d <dir>, on the data themselves`,
    );
  try {
    return await context.withDoor(flags, (door) => door.perform(publishAnchor, {}));
  } catch (error) {
    if (error instanceof SvcError && error.code === "delivery_failed" && error.extra?.["sinks"] !== undefined)
      return error.extra as unknown as Published;
    throw error;
  }
}

async function publish(context: Context, flags: PublishFlags): Promise<Published> {
  const { io } = context;
  const settings = context.settings(flags);
  const given: AnchorSink[] = [
    ...(flags.file ?? []).map((path) => ({ type: "file" as const, path: resolve(io.cwd, path) })),
    ...(flags.webhook ?? []).map((url) => ({ type: "webhook" as const, url, secret: flags.secret ?? null })),
  ];
  if (flags.secret !== undefined && flags.webhook === undefined)
    throw invalid("--secret: goes with --webhook <url>");
  const sinks = given.length > 0 ? given : settings.anchor.sinks;
  if (sinks.length === 0)
    throw invalid("where to? give --file <path> or --webhook <url>, or configure anchor.sinks");
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
      `INVALID: the ledger does not verify at record ${first_bad.seq}: ${printable(first_bad.problem)}`,
    ];
  const lines = columns(findings.map(row));
  const bad = findings.filter(({ problem }) => problem !== null).length;
  if (bad > 0)
    return [
      ...lines,
      `INVALID: ${bad} of ${plural(findings.length, "anchor")} ${bad === 1 ? "does" : "do"} not hold`,
    ];
  const hold = `${plural(findings.length, "anchor")} ${findings.length === 1 ? "holds" : "hold"}`;
  lines.push(`ok: ${hold} for the ledger of ${plural(records, "record")}, head ${head}`);
  const kinds = new Set(findings.map(({ trust }) => trust));
  if (kinds.has("unsigned"))
    lines.push("  note:        an anchor without a signature shows nothing about who made it");
  if (kinds.has("unchecked"))
    lines.push("  not checked: the signatures, for want of a trusted key (--pub <file>)");
  return lines;
}

function row({ line, ts_ms, records, problem }: AnchorFinding): string[] {
  const when = ts_ms === null ? `line ${line}` : isoTime(ts_ms);
  const count = records === null ? "? records" : plural(records, "record");
  return [when, count, problem === null ? "ok" : `INVALID: ${printable(problem)}`];
}

function isoTime(ms: number): string {
  const at = new Date(ms);
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString();
}
