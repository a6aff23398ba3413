/** The free labels of a manifest's risk that policies match on: a text, a number or a truth, or a list of such. */
import type { Json } from "../../kernel/json.ts";
import type { Manifest } from "./types.ts";

export function labelTexts(label: Json | undefined): readonly string[] {
  if (label === undefined || label === null) return NONE;
  if (Array.isArray(label)) return label.flatMap(labelTexts);
  return typeof label === "object" || label === "" ? NONE : [String(label)];
}

const NONE: readonly string[] = [];

/** What a policy reads of a tool's manifest. */
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

export function toolLabels({ effect, risk }: Manifest): ToolLabels {
  return {
    effect,
    data_class: risk.data_class,
    blast_radius: risk.blast_radius,
    source: labelTexts(risk["source"]),
    sink: labelTexts(risk["sink"]),
  };
}
