/** Checks the signing key, and that not all anchors are on the same disk as the ledger. */
import { access, constants, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { AnchorSink } from "../../config/sections/operations.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { readSigningKey } from "../../evidence/key-files.ts";
import { formatDuration } from "../../kernel/duration.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import {
  type CheckContext,
  type DoctorFinding,
  failFinding,
  failFindings,
  okFinding,
  warnFinding,
} from "./finding.ts";
import { nearestExisting } from "./paths.ts";

const SIGNING = "signing key";
const ANCHORS = "anchors";

export async function checkSigningKey({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const path = settings.signing_key;
  if (path === null)
    return [
      okFinding(SIGNING, "none: no signed bundles, and anchors are unsigned; create one with svc keygen"),
    ];
  try {
    const { key_id } = readSigningKey(path);
    const { mode } = await stat(path);
    // Group read access is accepted: Kubernetes and many packages give a service its key that way.
    if ((mode & 0o027) !== 0) {
      return [warnFinding(SIGNING, `${path} can be read or changed by other accounts`, `chmod 600 ${path}`)];
    }
    return [okFinding(SIGNING, `Ed25519, key id ${key_id}`)];
  } catch (error) {
    return failFindings(SIGNING, error, "create a key with svc keygen <prefix>, and configure the .key file");
  }
}

export async function checkAnchors({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const { sinks, interval_ms } = settings.anchor;
  if (sinks.length === 0) return [okFinding(ANCHORS, "no sinks are configured")];
  const findings = [
    okFinding(ANCHORS, `${formatCountOf(sinks.length, "sink")}, every ${formatDuration(interval_ms)}`),
  ];
  for (const sink of sinks) {
    if (sink.type === "file" && !(await isWritable(sink.path))) {
      findings.push(
        failFinding(
          ANCHORS,
          `${sink.path} cannot be written`,
          "create its directory, or give the account write access",
        ),
      );
    }
  }
  if (await areAllOnLedgerDisk(settings, sinks)) {
    const text =
      "every sink is on the disk of the data directory: anyone who can rewrite the ledger can rewrite its anchors";
    findings.push(warnFinding(ANCHORS, text, "add a webhook, or a file on another machine"));
  }
  return findings;
}

/** Whether all sinks are files on the disk of a file-based ledger. */
async function areAllOnLedgerDisk(settings: LoadedSettings, sinks: readonly AnchorSink[]): Promise<boolean> {
  if (settings.store === "postgres") return false;
  const disk = await deviceOf(settings.data);
  for (const sink of sinks) {
    if (sink.type !== "file" || (await deviceOf(sink.path)) !== disk) return false;
  }
  return true;
}

async function deviceOf(path: string): Promise<number> {
  return (await stat(await nearestExisting(path))).dev;
}

async function isWritable(path: string): Promise<boolean> {
  const there = await stat(path).catch(() => undefined);
  if (there !== undefined && !there.isFile()) return false;
  return access(there === undefined ? dirname(path) : path, constants.W_OK).then(
    () => true,
    () => false,
  );
}
