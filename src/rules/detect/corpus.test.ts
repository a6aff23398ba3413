/**
 * Holds the detector to a corpus: what it must find, what it must leave alone. It prints precision and
 * recall, so that a change of a pattern shows what it bought and what it cost.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { HitFinder } from "./hits.ts";
import { findInjection } from "./injection.ts";
import { findPii } from "./pii.ts";
import { findSecrets } from "./secrets.ts";

interface Sample {
  kind: string;
  parts?: string[];
  text?: string;
  before?: string;
  after?: string;
  key?: string;
}
type Innocent = string | { text: string; key?: string };

const folder = new URL("../../../test/cases/detect/", import.meta.url);
const read = <T>(name: string): T[] => parse(readFileSync(new URL(`${name}.yaml`, folder), "utf8")) as T[];

const everywhere = read<Innocent>("innocent");

const CORPORA: { name: string; finder: HitFinder; least: number }[] = [
  { name: "secrets", finder: findSecrets, least: 150 },
  { name: "pii", finder: findPii, least: 60 },
  { name: "injection", finder: findInjection, least: 60 },
];
/** Which words of a sentence make it an instruction is a matter of taste: any place in it will do. */
const ANYWHERE = new Set(["injection"]);

const FLOOR = 0.97;

describe.each(CORPORA)("the $name corpus", ({ name, finder, least }) => {
  const samples = read<Sample>(name);
  const innocent = [...everywhere, ...read<Innocent>(`${name}-innocent`)];

  it("is large enough to mean something", () => {
    expect(samples.length).toBeGreaterThanOrEqual(least);
    expect(innocent.length).toBeGreaterThanOrEqual(300);
    expect(new Set(samples.map((sample) => JSON.stringify(sample))).size).toBe(samples.length);
  });

  it(`keeps precision and recall at ${FLOOR} or above`, () => {
    const missed = samples.filter((sample) => !found(sample, finder, ANYWHERE.has(name)));
    const alarms = innocent.filter((one) => hitsIn(one, finder).length > 0);
    const hit = samples.length - missed.length;
    const recall = hit / samples.length;
    const precision = hit / (hit + alarms.length);
    const figures = `${name}: precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)} (${samples.length} samples, ${innocent.length} innocent)`;
    console.log(figures);
    const problems = [
      ...missed.map(
        (sample) =>
          `missed ${sample.kind}: ${JSON.stringify({ ...sample, text: textOf(sample), got: finder(textOf(sample), sample.key) })}`,
      ),
      ...alarms.map((one) => `false alarm: ${JSON.stringify(one)} ${JSON.stringify(hitsIn(one, finder))}`),
    ];
    expect(Math.min(precision, recall), `${figures}\n${problems.join("\n")}`).toBeGreaterThanOrEqual(FLOOR);
    if (process.env["SVC_SHOW_CORPUS"] !== undefined) console.log(problems.join("\n"));
  });
});

function textOf({ before = "", parts, text, after = "" }: Sample): string {
  return before + (parts?.join("") ?? text ?? "") + after;
}

/** Found means: with the right kind, and with no character of it left outside. */
function found(sample: Sample, finder: HitFinder, anywhere: boolean): boolean {
  const from = (sample.before ?? "").length;
  const to = from + (sample.parts?.join("") ?? sample.text ?? "").length;
  return finder(textOf(sample), sample.key).some(
    (hit) => hit.kind === sample.kind && (anywhere || (hit.start <= from && hit.end >= to)),
  );
}

function hitsIn(one: Innocent, finder: HitFinder) {
  return typeof one === "string" ? finder(one) : finder(one.text, one.key);
}
