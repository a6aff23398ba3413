/** Anchors against a ledger: Python and TypeScript say the same of each. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { anchorLine, type LedgerAnchor, makeAnchor } from "../../src/evidence/anchors/anchor.ts";
import { verifyAnchors } from "../../src/evidence/anchors/anchor-verify.ts";
import { verifyLedgerFile } from "../../src/evidence/verify-ledger.ts";
import { tempDir } from "../support/tmp.ts";
import { freshKey } from "./support/bundles.ts";
import { drafts, ledgerText, seal, storeOf } from "./support/ledgers.ts";
import { python } from "./support/verifiers.ts";

const key = freshKey();
const other = freshKey();
const list = drafts(3, 30);
const home = tempDir("anchors");
const at = (name: string, text: string) => {
  writeFileSync(join(home, name), text);
  return join(home, name);
};
const pub = at("k.pub", key.pem);

async function anchorAt(
  size: number,
  ts_ms: number,
  signing: typeof key | null = key,
): Promise<LedgerAnchor> {
  return makeAnchor(await storeOf(list.slice(0, size)), { now: () => ts_ms, region: null, signing });
}

describe("anchors", async () => {
  const [a, b, c] = [await anchorAt(0, 1), await anchorAt(10, 2), await anchorAt(30, 3)];
  const unsigned = await anchorAt(30, 4, null);
  const stranger = await anchorAt(30, 4, other);
  const rewritten = list.with(4, { ...list[4]!, actor: "somebody else" });
  const whole = ledgerText(seal(list));
  const cases: [string, string, string][] = [
    ["good ones", [a, b, c].map(anchorLine).join("\n"), whole],
    ["good ones with a line end", `${[a, b, c].map(anchorLine).join("\n")}\n`, whole],
    ["a cut ledger", [a, b, c].map(anchorLine).join("\n"), ledgerText(seal(list.slice(0, 20)))],
    ["a rewritten ledger", [a, b, c].map(anchorLine).join("\n"), ledgerText(seal(rewritten))],
    ["an unsigned one", [a, unsigned].map(anchorLine).join("\n"), whole],
    ["a stranger's", [a, stranger].map(anchorLine).join("\n"), whole],
    ["another time", [a, { ...b, ts_ms: 5 }].map(anchorLine).join("\n"), whole],
    ["a member too many", anchorLine({ ...b, note: "x" } as LedgerAnchor), whole],
    ["an empty line", `${anchorLine(a)}\n\n${anchorLine(b)}\n`, whole],
    ["no JSON", `${anchorLine(a)}\nhello\n`, whole],
    ["CR LF", `${anchorLine(a)}\r\n`, whole],
    ["a bad ledger", anchorLine(b), whole.replace('"seq":7,', '"seq":8,')],
  ];

  it.each(cases)("%s", async (name, anchors, ledger) => {
    const anchorsFile = at(`${name}.anchors`, anchors);
    const ledgerFile = at(`${name}.jsonl`, ledger);
    for (const keys of [[key], []]) {
      const trusted = new Map(keys.map((one) => [one.key_id, one]));
      const own = await verifyAnchors(
        anchorsFile,
        (sizes) => verifyLedgerFile(ledgerFile, { sizes }),
        trusted,
      );
      const said = await python([
        "verify-anchors",
        ...(keys.length > 0 ? ["--pub", pub] : []),
        anchorsFile,
        ledgerFile,
      ]);
      const theirs = said
        .filter((line) => / {2}(?:\d+|\?) records {2}/.test(line))
        .map((line) => line.endsWith("  ok"));
      expect(
        own.findings.map(({ problem }) => problem === null),
        said.join("\n"),
      ).toEqual(theirs);
      expect(own.ledger.first_bad !== null).toBe(said.some((line) => line.startsWith("INVALID: the ledger")));
    }
  });
});
