/** Kinds of content checks. In a separate file, so that deciding a call loads no schema library. */
export const CONTENT_KINDS = ["secrets", "pii", "injection"] as const;
export type ContentKind = (typeof CONTENT_KINDS)[number];
