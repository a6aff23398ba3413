/** How a manifest says that a person is shown the call. */
export const CARD_FORMATS = ["text", "money", "time", "code", "diff"] as const;
export type CardFormat = (typeof CARD_FORMATS)[number];

/** The `card` of a manifest. */
export interface CardTemplate {
  title: string | null;
  fields: { label: string; path: string; as: CardFormat }[];
  reveal: string[];
  note: string | null;
}
