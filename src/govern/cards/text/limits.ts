/** Drawing limits of a card. No limit hides a value: above it, the card shows the value in full in another form. */
export const CARD_LIMITS = {
  /** Characters of one value inside the sentence. A longer value is cut there and listed in full below. */
  place_chars: 160,
  /** Lines of both sides together. Above it the card shows each side as text instead of a diff. */
  compared_lines: 40_000,
  /** Lines of a diff. Above it the card shows both sides as text. */
  diff_lines: 2_000,
  /** Number of replacements times characters of the edited text. Above it the card does not compute the result. */
  edited_chars: 4_000_000,
  /** Arguments listed separately; the others appear together as one value. */
  listed_arguments: 200,
  /** A text up to this length shows no size. */
  plain_chars: 120,
  /** Undeclared members that one remark names; it counts the rest. The value itself shows all of them. */
  named_members: 20,
  /** Undeclared members stored with a request. */
  kept_members: 1_000,
} as const;
