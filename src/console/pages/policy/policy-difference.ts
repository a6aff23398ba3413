/** Comparison of two policies over all calls: looser, stricter and other changes, each with an example. */
import {
  type DiffClass,
  type DiffSide,
  describeTools,
  type PolicyDiff,
} from "../../../rules/policy/prove/diff.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import { bulletList, cardBlock, noticeBox, tableBlock } from "../../parts/blocks.ts";
import { formatCountOf, type MarkTone, markLabel, rulingMark } from "../../parts/marks.ts";
import { keepButton } from "./policy-trial.ts";

const DIRECTIONS = [
  ["looser", "Looser: allows calls that were held back, or lets other people approve them", "bad"],
  ["stricter", "Stricter: holds back calls that were allowed", "good"],
  ["other", "Other: same decision by the same people, but other people are notified", "info"],
] as const satisfies readonly (readonly [keyof PolicyDiff, string, MarkTone])[];

/** Result of the comparison, with its examples as plain data. */
type Compared = Pick<PolicyDiff, "complete" | "covered"> &
  Record<(typeof DIRECTIONS)[number][0], readonly Shown[]>;
type Shown = Omit<DiffClass, "example" | "counted" | "undeclared"> & {
  example: { tool: string };
  counted?: readonly string[] | undefined;
  undeclared?: string | undefined;
};

export function differenceCards(diff: Compared, base: string): HtmlFragment {
  const { complete, covered } = diff;
  const total = DIRECTIONS.reduce((sum, [name]) => sum + diff[name].length, 0);
  const other = base === "" ? "the active policy" : `version ${base}`;
  return cardBlock(
    { title: `All calls, compared with ${other}`, id: "difference" },
    safeHtml`<ul class="counts">${DIRECTIONS.map(([name, , tone]) => safeHtml`<li>${markLabel(diff[name].length === 0 ? "quiet" : tone, String(diff[name].length))} ${name}</li>`)}</ul>`,
    total === 0 && complete ? safeHtml`<p class="calm">The same decision for every call.</p>` : emptyHtml,
    complete
      ? emptyHtml
      : noticeBox(
          "warn",
          safeHtml`<p>Incomplete: ${covered.tools} of ${formatCountOf(covered.of, "class", "classes")} of tools were compared. Other calls may differ too.</p>`,
          bulletList(covered.reasons),
        ),
    DIRECTIONS.map(([name, label]) =>
      diff[name].length === 0
        ? emptyHtml
        : safeHtml`<h3>${label}</h3>${tableBlock(label, ["Tools", "Was", "Becomes", "For example", "Keep"], diff[name].map(classRow))}`,
    ),
  );
}

function classRow(one: Shown): TemplateValue[] {
  const { from, to, a, b, example, counted } = one;
  const by = (rules: readonly string[]) => rules.map((rule) => safeHtml` <code>${rule}</code>`);
  const terms = ({ approval }: DiffSide) =>
    approval === undefined ? emptyHtml : safeHtml`<span class="part soft">${approval}</span>`;
  const rule = b.rules[0];
  const test = {
    name: `${example.tool}: ${to.replace("_", " ")}, was ${from.replace("_", " ")}`,
    input: example,
    expect: to,
    ...(rule === undefined ? {} : { rule }),
  };
  return [
    describeTools(one).map((text, i) =>
      i < one.tools.length
        ? safeHtml`<span class="part"><code>${text}</code></span>`
        : safeHtml`<span class="part soft">${text}</span>`,
    ),
    safeHtml`${rulingMark(from)}${by(a.rules)}${terms(a)}`,
    safeHtml`${rulingMark(to)}${by(b.rules)}${terms(b)}`,
    safeHtml`<code class="example">${JSON.stringify(example)}</code>${(counted ?? []).map((one) => safeHtml`<span class="part soft">after ${one}</span>`)}`,
    // An example with counters cannot become a test, because a test's input has no counters.
    counted === undefined ? keepButton(test) : "",
  ];
}
