/** The three verifiers behind one question: does this file hold? Python is asked about many files at once. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { verifyBundle } from "../../../src/evidence/bundles/verify-bundle.ts";
import type { PublicKey } from "../../../src/evidence/signing.ts";
import { verifyLedgerFile } from "../../../src/evidence/verify-ledger.ts";
import { parseVerifierKey } from "../../../src/evidence/witness/note.ts";
import type { WitnessRequirement } from "../../../src/evidence/witness/requirements.ts";
import { ROOT } from "../../support/files.ts";
import { program } from "../../support/programs.ts";

export type What = "ledger" | "bundle";

/** For each file: null where it holds, else why not. */
export type Verdicts = Map<string, string | null>;

const AT_ONCE = 400;
const PYTHON = await program("python3");

export async function askTypeScript(
  what: What,
  files: readonly string[],
  key: PublicKey,
  witness?: string,
): Promise<Verdicts> {
  const verdicts: Verdicts = new Map();
  const witnesses = witness === undefined ? [] : [parseVerifierKey(witness, "witness")];
  const demand = { witnesses, quorum: witnesses.length };
  for (const file of files)
    verdicts.set(file, await ownVerdict(what, file, key, demand).catch((error: Error) => error.message));
  return verdicts;
}

async function ownVerdict(
  what: What,
  file: string,
  key: PublicKey,
  demand: WitnessRequirement,
): Promise<string | null> {
  if (what === "ledger") return (await verifyLedgerFile(file)).first_bad?.problem ?? null;
  const verdict = await verifyBundle(file, new Map([[key.key_id, key]]), demand);
  return verdict.ok ? null : verdict.problem;
}

interface BrowserCore {
  parsePublicKey(pem: string): unknown;
  verifyLedger(blob: Blob): Promise<{ ok: boolean; problem: string | null }>;
  parseWitness(text: string): unknown;
  verifyBundle(
    blob: Blob,
    options: { trusted: unknown[]; witnesses: unknown[]; quorum: number },
  ): Promise<{ ok: boolean; problem: string | null }>;
}

export async function askBrowser(
  what: What,
  files: readonly string[],
  key: PublicKey,
  witness?: string,
): Promise<Verdicts> {
  const core = (await import(pathToFileURL(join(ROOT, "viewer/src/verify.js")).href)) as BrowserCore;
  const witnesses = witness === undefined ? [] : [core.parseWitness(witness)];
  const options = {
    trusted: [core.parsePublicKey(key.pem)],
    witnesses,
    quorum: witnesses.length,
  };
  const verdicts: Verdicts = new Map();
  for (const file of files) {
    const blob = new Blob([readFileSync(file)]);
    const { ok, problem } = await (what === "ledger"
      ? core.verifyLedger(blob)
      : core.verifyBundle(blob, options));
    verdicts.set(file, ok ? null : (problem ?? "no reason"));
  }
  return verdicts;
}

export async function askPython(
  what: What,
  files: readonly string[],
  pub: string,
  witness?: string,
): Promise<Verdicts> {
  const demand = witness === undefined ? [] : ["--witness", witness, "--quorum", "1"];
  const verdicts: Verdicts = new Map();
  for (let i = 0; i < files.length; i += AT_ONCE) {
    // Python heads each line with the file's name only where there are several.
    const some = files.slice(i, i + AT_ONCE);
    const asked = some.length === 1 ? [some[0]!, some[0]!] : some;
    const command =
      what === "ledger" ? ["verify", ...asked] : ["verify-bundle", "--pub", pub, ...demand, ...asked];
    const said = await python(command);
    for (const file of some) {
      const line = said.find((one) => one.startsWith(`${file}: `) || one.startsWith(`${file} `));
      if (line === undefined) throw new Error(`Python said nothing about ${file}`);
      verdicts.set(file, line.startsWith(`${file}: ok`) ? null : line);
    }
  }
  return verdicts;
}

/** The lines that `python3 -m reversi_sdk` prints for any files. */
export function python(args: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(PYTHON, ["-m", "reversi_sdk", ...args], {
      env: {
        PATH: process.env["PATH"] ?? "",
        PYTHONPATH: join(ROOT, "sdk/python"),
        PYTHONDONTWRITEBYTECODE: "1",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
    }
    child.once("error", reject);
    child.once("close", () => resolve(text.split("\n")));
  });
}
