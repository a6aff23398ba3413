/** Two policies compared over all calls: what becomes looser, stricter or otherwise, each with a call that shows it. */
import { type DiffClass, type PolicyDiff, type Side, toldTools } from "../../model/policy/prove/diff.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { bullets, card, notice, table } from "../parts/blocks.ts";
import { mark, plural, rulingMark, type Tone } from "../parts/marks.ts";
import { keepButton } from "./policy-trial.ts";

const DIRECTIONS = [
  ["looser", "Looser: lets pass what was held back, or lets others approve it", "bad"],
  ["stricter", "Stricter: holds back what was let pass", "good"],
  ["other", "Otherwise: the same answer by the same people, but others hear of it", "info"],
] as const satisfies readonly (readonly [keyof PolicyDiff, string, Tone])[];

/** Shapes of the operation's answer: those of the comparison, with its examples as plain data. */
type Compared = Pick<PolicyDiff, "complete" | "covered"> &
  Record<(typeof DIRECTIONS)[number][0], readonly Shown[]>;
type Shown = Omit<DiffClass, "example" | "counted" | "undeclared"> & {
  example: { tool: string };
  counted?: readonly string[] | undefined;
  undeclared?: string | undefined;
};

export function differenceCards(diff: Compared, base: string): Html {
  const { complete, covered } = diff;
  const total = DIRECTIONS.reduce((sum, [name]) => sum + diff[name].length, 0);
  const other = base === "" ? "the policy in force" : `version ${base}`;
  return card(
    { title: `All calls, compared with ${other}`, id: "difference" },
    html`<ul class="counts">${DIRECTIONS.map(([name, , tone]) => html`<li>${mark(diff[name].length === 0 ? "quiet" : tone, String(diff[name].length))} ${name}</li>`)}</ul>`,
    total === 0 && complete ? html`<p class="calm">The same decision for every call.</p>` : nothing,
    complete
      ? nothing
      : notice(
          "warn",
          html`<p>Incomplete: ${covered.tools} of ${plural(covered.of, "class", "classes")} of tools were gone through. What is not listed may differ, too.</p>`,
          bullets(covered.reasons),
        ),
    DIRECTIONS.map(([name, label]) =>
      diff[name].length === 0
        ? nothing
        : html`<h3>${label}</h3>${table(label, ["Tools", "Was", "Becomes", "For example", "Keep"], diff[name].map(classRow))}`,
    ),
  );
}

function classRow(one: Shown): Part[] {
  const { from, to, a, b, example, counted } = one;
  const by = (rules: readonly string[]) => rules.map((rule) => html` <code>${rule}</code>`);
  const terms = ({ approval }: Side) =>
    approval === undefined ? nothing : html`<span class="part soft">${approval}</span>`;
  const rule = b.rules[0];
  const test = {
    name: `${example.tool}: ${to.replace("_", " ")}, was ${from.replace("_", " ")}`,
    input: example,
    expect: to,
    ...(rule === undefined ? {} : { rule }),
  };
  return [
    toldTools(one).map((told, i) =>
      i < one.tools.length
        ? html`<span class="part"><code>${told}</code></span>`
        : html`<span class="part soft">${told}</span>`,
    ),
    html`${rulingMark(from)}${by(a.rules)}${terms(a)}`,
    html`${rulingMark(to)}${by(b.rules)}${terms(b)}`,
    html`<code class="example">${JSON.stringify(example)}</code>${(counted ?? []).map((one) => html`<span class="part soft">after ${one}</span>`)}`,
    // What had been counted before is no part of a test's input, so that it could not be held to the answer.
    counted === undefined ? keepButton(test) : "",
  ];
}
