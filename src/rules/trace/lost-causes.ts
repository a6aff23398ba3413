/** Why the values of a run can no longer be distinguished, so that every value counts as carried. */
export const LOST_CAUSES = {
  max: "too many values were read to follow them",
  open: "too many results are not known",
  late: "earlier results were not followed",
  store: "a store was read that holds values that were not followed",
} as const;
export type LostCause = keyof typeof LOST_CAUSES;
