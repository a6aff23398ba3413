/** What the content checks look for. Apart from the schema, so that deciding a call needs no schema library. */
export const CONTENT_KINDS = ["secrets", "pii", "injection"] as const;
export type ContentKind = (typeof CONTENT_KINDS)[number];
