/** Bounds of a card's drawing. None of them hides a value: past one, the value is shown in another way, in full. */
export const CARD_LIMITS = {
  /** Characters of one value inside the sentence. A longer value is cut there and listed in full below. */
  place_chars: 160,
  /** Lines of both sides together. Above it they are not compared; each side is shown as text. */
  compared_lines: 40_000,
  /** Lines that a diff may have. A longer one is replaced by both sides as text. */
  diff_lines: 2_000,
  /** Replacements times characters of the text that they are made in. Above it the result is not worked out. */
  edited_chars: 4_000_000,
  /** Arguments that are listed one by one; the others are shown together as one value. */
  listed_arguments: 200,
  /** A text up to this length needs no count next to it. */
  plain_chars: 120,
  /** Undeclared members that one remark names; the rest is counted. The value itself shows all of them. */
  named_members: 20,
  /** Undeclared members that are kept with a request. */
  kept_members: 1_000,
} as const;
