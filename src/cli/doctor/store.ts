/**
 * Checks the store: opens it, migrates it, and writes and syncs under its lock without adding a ledger record. Then
 * checks its contents: the end of the ledger, the clock, and active halts.
 */
import { access, constants, stat } from "node:fs/promises";
import { maskConnection } from "../../config/mask.ts";
import { checkTail } from "../../evidence/verify-ledger.ts";
import { HALTS_KEY } from "../../govern/document-keys.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { openStore } from "../../store/open.ts";
import { clockFindings } from "./clock.ts";
import { type CheckContext, type DoctorFinding, failFinding, okFinding, warnFinding } from "./finding.ts";
import { nearestExisting } from "./paths.ts";
import { tokenFindings } from "./upstreams.ts";

const STORE = "store";
const LEDGER = "ledger";
const TAIL = 1_000;
/** Temporary entry that the service never reads. Doctor removes it again. */
const PROBE_KEY = "doctor";

export async function checkStore(world: CheckContext): Promise<DoctorFinding[]> {
  const { settings, env } = world;
  const early = settings.store === "postgres" ? [] : await beforeOpening(settings.data);
  if (early.length > 0) return [...early, ...clockFindings(env.now(), null)];
  const warnings: string[] = [];
  let store: StateStore;
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
        : "check the log of the last shutdown";
    const warned = warnings.map((text) => warnFinding(STORE, text, hint));
    return [tried, ...warned, ...(tried.status === "ok" ? await contents(store, world) : [])];
  } finally {
    await store.close();
  }
}

/**
 * Checks the data directory before opening it. A directory or file that belongs to doctor's account would lock out the
 * service.
 */
async function beforeOpening(data: string): Promise<DoctorFinding[]> {
  const found = await stat(data).catch(() => undefined);
  if (found === undefined) {
    const parent = await nearestExisting(data);
    const writable = await access(parent, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    );
    if (writable) return [okFinding(STORE, `${data} does not exist yet; the first start creates it`)];
    return [
      failFinding(
        STORE,
        `${data} does not exist and cannot be created in ${parent}`,
        "create it for the service's account",
      ),
    ];
  }
  if (!found.isDirectory())
    return [failFinding(STORE, `${data} is not a directory`, "set the data directory with -d or SVC_DATA")];
  const own = process.getuid?.();
  if (own === undefined || own === found.uid) return [];
  const text = `${data} belongs to user ${found.uid}; files of user ${own} would lock the service out, so it was not opened`;
  return [warnFinding(STORE, text, "run doctor as the account of the service")];
}

async function tryOut(store: StateStore, { settings, env }: CheckContext): Promise<DoctorFinding> {
  try {
    await store.ready();
    await store.transact({ run: (tx) => tx.put("meta", PROBE_KEY, { at_ms: env.now() }) });
    await store.transact({ run: (tx) => tx.delete("meta", PROBE_KEY) });
    const { records } = await store.head();
    const place = settings.store === "postgres" ? maskConnection(settings.database_url ?? "") : settings.data;
    return okFinding(
      STORE,
      `${store.kind} store at ${place} accepts writes; ${formatCountOf(records, "record")} in the ledger`,
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
  return failFinding(STORE, messageOf(error), fix);
}

async function contents(store: StateStore, { env, settings }: CheckContext): Promise<DoctorFinding[]> {
  const { finding, last_ms } = await ledgerTail(store);
  const findings = [finding, ...clockFindings(env.now(), last_ms)];
  const halts = (await store.get("halts", HALTS_KEY))?.active ?? [];
  if (halts.length > 0) {
    const text = `${formatCountOf(halts.length, "halt is", "halts are")} active`;
    findings.push(warnFinding("halts", text, "list them with svc halt list, lift them with svc halt lift"));
  }
  const { kill_file } = settings;
  if (kill_file !== null && (await stat(kill_file).catch(() => undefined)) !== undefined) {
    const text = `the kill-switch file ${kill_file} exists, so every new call is blocked`;
    findings.push(warnFinding("halts", text, `svc kill-switch off ${kill_file}`));
  }
  findings.push(...(await tokenFindings(store, settings)));
  return findings;
}

const unsound = (problem: string) => ({
  finding: failFinding(LEDGER, problem, "run svc verify; stop the service until the cause is known"),
  last_ms: null,
});

export async function ledgerTail(
  store: StateStore,
): Promise<{ finding: DoctorFinding; last_ms: number | null }> {
  const { records, hash } = await store.head();
  if (records === 0) return { finding: okFinding(LEDGER, "no records yet"), last_ms: null };
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
        ? `${formatCountOf(records - from - lines.length, "record")} of the last ${records - from} cannot be read`
        : last !== hash
          ? "the last record does not match the stored head"
          : null;
  if (problem !== null) return unsound(problem);
  const { ts_ms } = JSON.parse(lines.at(-1)!) as { ts_ms: number };
  const which = from === 0 ? formatCountOf(records, "record") : `the last ${TAIL} of ${records} records`;
  return { finding: okFinding(LEDGER, `${which} verified, head ${hash.slice(0, 16)}`), last_ms: ts_ms };
}
