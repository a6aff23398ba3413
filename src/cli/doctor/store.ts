/**
 * The store, tried out: opened with its migrations, written to and synced under its lock, without a record
 * on the ledger. Then what it holds: the ledger's tail, the clock against it, and the halts in force.
 */

import { access, constants, stat } from "node:fs/promises";
import { maskConnection } from "../../config/mask.ts";
import { HALTS_KEY } from "../../engine/keys.ts";
import { checkTail } from "../../evidence/verify-ledger.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import type { Store } from "../../port/store.ts";
import { openStore } from "../../store/open.ts";
import { clockFindings } from "./clock.ts";
import { type DoctorFinding, fail, ok, type World, warn } from "./finding.ts";
import { nearestExisting } from "./place.ts";

const STORE = "store";
const LEDGER = "ledger";
const TAIL = 1_000;
/** A small fact of the store that the service never reads, gone again when doctor is done. */
const PROBE_KEY = "doctor";

export async function checkStore(world: World): Promise<DoctorFinding[]> {
  const { settings, env } = world;
  const early = settings.store === "postgres" ? [] : await beforeOpening(settings.data);
  if (early.length > 0) return [...early, ...clockFindings(env.now(), null)];
  const warnings: string[] = [];
  let store: Store;
  try {
    const { data, database_url } = settings;
    store = await openStore({
      store: settings.store,
      data,
      database_url,
      warn: (text) => void warnings.push(text),
    });
  } catch (error) {
    return [storeFailure(error), ...clockFindings(env.now(), null)];
  }
  try {
    const tried = await tryOut(store, world);
    const hint =
      settings.store === "postgres"
        ? "correct the database's own settings"
        : "look at the log of the last stop";
    const told = warnings.map((text) => warn(STORE, text, hint));
    return [tried, ...told, ...(tried.status === "ok" ? await contents(store, world) : [])];
  } finally {
    await store.close();
  }
}

/** A folder that doctor made, or files written under another account, would keep the service out. */
async function beforeOpening(data: string): Promise<DoctorFinding[]> {
  const found = await stat(data).catch(() => undefined);
  if (found === undefined) {
    const parent = await nearestExisting(data);
    const writable = await access(parent, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    );
    if (writable) return [ok(STORE, `${data} does not exist yet; the first start makes it`)];
    return [
      fail(
        STORE,
        `${data} does not exist and cannot be made in ${parent}`,
        "make it for the service's account",
      ),
    ];
  }
  if (!found.isDirectory())
    return [fail(STORE, `${data} is not a folder`, "give the data folder with -d or SVC_DATA")];
  const own = process.getuid?.();
  if (own === undefined || own === found.uid) return [];
  const text = `${data} belongs to user ${found.uid} and was not opened by user ${own}, whose files would be in the way`;
  return [warn(STORE, text, "run doctor as the account of the service")];
}

async function tryOut(store: Store, { settings, env }: World): Promise<DoctorFinding> {
  try {
    await store.ready();
    await store.transact({ run: (tx) => tx.put("meta", PROBE_KEY, { at_ms: env.now() }) });
    await store.transact({ run: (tx) => tx.delete("meta", PROBE_KEY) });
    const { records } = await store.head();
    const place = settings.store === "postgres" ? maskConnection(settings.database_url ?? "") : settings.data;
    return ok(
      STORE,
      `${store.kind} store at ${place} takes writes; ${plural(records, "record")} on the ledger`,
    );
  } catch (error) {
    return storeFailure(error);
  }
}

function storeFailure(error: unknown): DoctorFinding {
  const corrupt = error instanceof SvcError && error.code === "corrupt";
  const fix = corrupt
    ? "svc verify names the first bad record; restore a backup of the data"
    : "check the disk or the database, its space and its permissions; until then requests get 503";
  return fail(STORE, messageOf(error), fix);
}

async function contents(store: Store, { env, settings }: World): Promise<DoctorFinding[]> {
  const { finding, last_ms } = await ledgerTail(store);
  const findings = [finding, ...clockFindings(env.now(), last_ms)];
  const halts = (await store.get("halts", HALTS_KEY))?.active ?? [];
  if (halts.length > 0) {
    const text = `${plural(halts.length, "halt is", "halts are")} in force`;
    findings.push(warn("halts", text, "svc halt list shows them, svc halt lift lifts them"));
  }
  const { kill_file } = settings;
  if (kill_file !== null && (await stat(kill_file).catch(() => undefined)) !== undefined) {
    const text = `the kill-switch file ${kill_file} exists, so every new call is blocked`;
    findings.push(warn("halts", text, `svc kill-switch off ${kill_file}`));
  }
  return findings;
}

const unsound = (problem: string) => ({
  finding: fail(LEDGER, problem, "run svc verify; do not append until it is understood"),
  last_ms: null,
});

export async function ledgerTail(store: Store): Promise<{ finding: DoctorFinding; last_ms: number | null }> {
  const { records, hash } = await store.head();
  if (records === 0) return { finding: ok(LEDGER, "no records yet"), last_ms: null };
  const from = Math.max(0, records - TAIL);
  const lines = await store
    .records({ from, to: records - 1, limit: TAIL })
    .catch((error: unknown) => messageOf(error));
  if (typeof lines === "string") return unsound(lines);
  const { bad, head: last } = checkTail(lines, from);
  const problem =
    bad !== null
      ? `record ${bad.seq}: ${bad.problem}`
      : lines.length !== records - from
        ? `${plural(records - from - lines.length, "record")} of the last ${records - from} cannot be read`
        : last !== hash
          ? "the last record is not the head that the store keeps"
          : null;
  if (problem !== null) return unsound(problem);
  const { ts_ms } = JSON.parse(lines.at(-1)!) as { ts_ms: number };
  const which = from === 0 ? plural(records, "record") : `the last ${TAIL} of ${records} records`;
  return { finding: ok(LEDGER, `${which} verified, head ${hash.slice(0, 16)}`), last_ms: ts_ms };
}
