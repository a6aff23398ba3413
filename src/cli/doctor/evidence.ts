/** What evidence rests on: the signing key, and anchors that lie where the ledger's disk cannot take them along. */

import { access, constants, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { AnchorSink } from "../../config/sections/operations.ts";
import type { Settings } from "../../config/settings.ts";
import { readSigningKey } from "../../evidence/key-files.ts";
import { showDuration } from "../../kernel/duration.ts";
import { plural } from "../../kernel/words.ts";
import { type DoctorFinding, fail, failures, ok, type World, warn } from "./finding.ts";
import { nearestExisting } from "./place.ts";

const SIGNING = "signing key";
const ANCHORS = "anchors";

export async function checkSigningKey({ settings }: World): Promise<DoctorFinding[]> {
  const path = settings.signing_key;
  if (path === null)
    return [ok(SIGNING, "none: no signed bundles, and anchors are unsigned; svc keygen makes one")];
  try {
    const { key_id } = readSigningKey(path);
    const { mode } = await stat(path);
    // A group that may read is how Kubernetes and many packages hand a key to the service's account.
    if ((mode & 0o027) !== 0) {
      return [warn(SIGNING, `${path} can be read or changed by other accounts`, `chmod 600 ${path}`)];
    }
    return [ok(SIGNING, `Ed25519, key id ${key_id}`)];
  } catch (error) {
    return failures(SIGNING, error, "make a key with svc keygen <prefix>, and give the .key file");
  }
}

export async function checkAnchors({ settings }: World): Promise<DoctorFinding[]> {
  const { sinks, interval_ms } = settings.anchor;
  if (sinks.length === 0) return [ok(ANCHORS, "no sinks are configured")];
  const findings = [ok(ANCHORS, `${plural(sinks.length, "sink")}, every ${showDuration(interval_ms)}`)];
  for (const sink of sinks) {
    if (sink.type === "file" && !(await isWritable(sink.path))) {
      findings.push(
        fail(ANCHORS, `${sink.path} cannot be written`, "make its folder, or allow the account to write"),
      );
    }
  }
  if (await allBesideTheLedger(settings, sinks)) {
    const text =
      "every sink lies on the disk of the data folder: who can rewrite the ledger can rewrite its anchors";
    findings.push(warn(ANCHORS, text, "add a webhook, or a file on another machine"));
  }
  return findings;
}

/** Only a file can lie beside the ledger, and only beside one that is made of files. */
async function allBesideTheLedger(settings: Settings, sinks: readonly AnchorSink[]): Promise<boolean> {
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
