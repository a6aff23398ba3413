/** Custom risk labels of a manifest, which policies match on: a string, number or boolean, or a list of them. */
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ToolManifest } from "./types.ts";

export function labelTexts(label: JsonValue | undefined): readonly string[] {
  if (label === undefined || label === null) return NONE;
  if (Array.isArray(label)) return label.flatMap(labelTexts);
  return typeof label === "object" || label === "" ? NONE : [String(label)];
}

const NONE: readonly string[] = [];

/** Labels of a tool that a policy can read. */
export interface ToolLabels {
  effect: string | null;
  data_class: string | null;
  blast_radius: string | null;
  source: readonly string[];
  sink: readonly string[];
}

export const NO_LABELS: ToolLabels = {
  effect: null,
  data_class: null,
  blast_radius: null,
  source: NONE,
  sink: NONE,
};

export function toolLabels({ effect, risk }: ToolManifest): ToolLabels {
  return {
    effect,
    data_class: risk.data_class,
    blast_radius: risk.blast_radius,
    source: labelTexts(risk["source"]),
    sink: labelTexts(risk["sink"]),
  };
}
