/**
 * The parsers, fuzzed in this process: for any text, each returns a value or one of our errors, soon.
 * An accepted value must be usable, with nothing of its meaning lost.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { readEntry } from "../../src/auth/key-entry.ts";
import { loadSettings } from "../../src/config/load.ts";
import { verifyAnchors } from "../../src/evidence/anchors/anchor-verify.ts";
import { verifyBundle } from "../../src/evidence/bundles/verify-bundle.ts";
import { checkTail, verifyLedgerFile } from "../../src/evidence/verify-ledger.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { toCanonicalJson } from "../../src/kernel/json/canonical.ts";
import { type JsonObject, type JsonValue, parseJson } from "../../src/kernel/json/json.ts";
import { manifestProblems, readManifests } from "../../src/rules/manifest/load.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { evaluatePolicy } from "../../src/rules/policy/evaluate.ts";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import { type Evidence, makeEvidence } from "./evidence.ts";
import { jsonTextFrom, textFrom, yamlFrom } from "./mutate.ts";
import { DEMO_CONFIG, DEMO_MANIFESTS, DEMO_POLICY, REQUESTS } from "./samples.ts";

/** Takes an input; whether it was accepted. Throws where something is wrong. */
export type Try = (input: string) => boolean | Promise<boolean>;

export interface Parser {
  inputs: fc.Arbitrary<string>;
  attempt: Try;
  close?(): void;
}

const BODIES = REQUESTS.flatMap(({ body }) => (body === undefined ? [] : [body]));

/** Runs the reader; an error of ours is a refusal, any other is a finding. */
function refusedOr<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    checkRefusal(error);
    return undefined;
  }
}

function checkRefusal(error: unknown): void {
  if (!(error instanceof SvcError)) throw error;
  if (/\n\s+at |undefined|\[object /.test(error.message))
    throw new Error(`a message that helps nobody: ${error.message.slice(0, 200)}`);
}

function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const texts = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => readFileSync(join(folder, name), "utf8"));

function json(): Parser {
  return {
    inputs: fc.oneof(jsonTextFrom(BODIES), textFrom(BODIES.map((body) => JSON.stringify(body)))),
    attempt(text) {
      const value = refusedOr(() => parseJson(text));
      if (value === undefined) return false;
      const written = toCanonicalJson(value);
      demand(written === toCanonicalJson(JSON.parse(text) as JsonValue), "JSON.parse reads another value");
      demand(toCanonicalJson(parseJson(written)) === written, "it does not come back as it was written");
      return true;
    },
  };
}

function manifests(): Parser {
  const samples = [
    DEMO_MANIFESTS,
    ...DEMO_MANIFESTS.trim().split(/\n(?=- )/),
    ...texts("examples/manifests").map((text) => text.slice(0, 900)),
  ];
  return {
    inputs: yamlFrom(samples),
    attempt(text) {
      const problems = manifestProblems(text, "m.yaml");
      for (const line of problems)
        demand(
          /^m\.yaml:[1-9]\d*: \S/.test(line) && !/undefined|\[object/.test(line),
          `an odd problem: ${line}`,
        );
      if (problems.length > 0) return false;
      readManifests([{ file: "m.yaml", text }]);
      return true;
    },
  };
}

const CALL = {
  tool: "pay.refund",
  args: { amount: 5_000, to: "a@example.net", text: "a".repeat(200) },
  actor: "bot",
  tenant: "acme",
  environment: "prod",
  effect: "irreversible",
  data_class: null,
  blast_radius: null,
  source: [],
  sink: [],
  step: 0,
  run_id: "r",
} as Parameters<typeof evaluatePolicy>[1];

function policies(): Parser {
  return {
    inputs: yamlFrom([DEMO_POLICY, ...texts("examples/policies").map((text) => text.slice(0, 1_200))]),
    attempt(text) {
      const doc = refusedOr(() => loadPolicy(text, "p.yaml"));
      if (doc === undefined) return false;
      evaluatePolicy(compilePolicy(doc), CALL, 1_790_000_000_000, new Map());
      return true;
    },
  };
}

function configs(): Parser {
  const folder = mkdtempSync(join(tmpdir(), "svc-configs-"));
  const file = join(folder, "svc.config.yaml");
  const key = {
    name: "k",
    role: "agent",
    key_sha256: "a".repeat(64),
    max_permissions: ["*"],
    expires_at: "2030-01-01T00:00:00Z",
  };
  return {
    inputs: fc.oneof(
      yamlFrom([DEMO_CONFIG, readFileSync("examples/gateway/svc.config.yaml", "utf8").slice(0, 800)]),
      jsonTextFrom([key]),
    ),
    attempt(text) {
      if (text.startsWith("{")) {
        const value = refusedOr(() => parseJson(text));
        if (value === undefined) return false;
        const { entry, problems } = readEntry(value);
        demand(entry !== undefined || problems.length > 0, "neither an entry nor a problem");
        return problems.length === 0;
      }
      writeFileSync(file, text);
      return refusedOr(() => loadSettings({ flags: {}, env: {}, cwd: folder })) !== undefined;
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Evidence that was changed must not pass, unless only its spelling was changed. */
async function bundles(): Promise<Parser> {
  const folder = mkdtempSync(join(tmpdir(), "svc-evidence-"));
  const evidence = await makeEvidence(folder);
  const pick = fc.constantFrom("ledger", "ledger", "ledger", "bundle", "anchor" as const);
  const input = pick.chain((kind) =>
    textFrom(evidence.texts[kind as keyof Evidence["texts"]]).map((text) => `${kind}\n${text}`),
  );
  return {
    inputs: input,
    attempt: (input) => {
      const end = input.indexOf("\n");
      const kind = input.slice(0, end) as keyof Evidence["texts"];
      return CHECKS[kind](input.slice(end + 1), evidence);
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const CHECKS: Record<
  keyof Evidence["texts"],
  (text: string, evidence: Evidence) => boolean | Promise<boolean>
> = {
  ledger(text, { texts }) {
    const lines = text.replace(/\n$/, "").split("\n");
    const ok = checkTail(lines, 0).bad === null;
    // A ledger that was cut between two records verifies on its own; that is what anchors are for.
    if (ok)
      demand(
        texts.ledger.some((sound) => `${sound}\n`.startsWith(lines.join("\n"))),
        "a changed ledger passes",
      );
    return ok;
  },
  async bundle(text, { file, texts, trusted }) {
    writeFileSync(file, text);
    try {
      const { ok } = await verifyBundle(file, trusted);
      if (ok)
        demand(
          texts.bundle.some((sound) => sameMeaning(sound, text)),
          "a changed bundle passes",
        );
      return ok;
    } catch (error) {
      checkRefusal(error);
      return false;
    }
  },
  async anchor(text, { file, ledger_file, texts, trusted }) {
    writeFileSync(file, text);
    try {
      const check = (sizes: Iterable<number>) => verifyLedgerFile(ledger_file, { tree: true, sizes });
      const { findings } = await verifyAnchors(file, check, trusted);
      const ok = findings.every(({ problem }) => problem === null);
      const lines = (all: string) => all.trimEnd().split("\n");
      const sound = new Set(
        texts.anchor.flatMap(lines).map((line) => toCanonicalJson(JSON.parse(line) as JsonValue)),
      );
      if (ok)
        demand(
          lines(text).every((line) => sound.has(toCanonicalJson(JSON.parse(line) as JsonValue))),
          "a changed anchor passes",
        );
      return ok;
    } catch (error) {
      checkRefusal(error);
      return false;
    }
  },
};

function sameMeaning(one: string, other: string): boolean {
  const read = (text: string) => toCanonicalJson(JSON.parse(text) as JsonObject);
  return read(one) === read(other);
}

export const PARSERS: Readonly<Record<string, () => Parser | Promise<Parser>>> = {
  json,
  manifests,
  policies,
  configs,
  bundles,
};
