/** Markdown of the reference pages: tables, code spans, and the note that a page is generated. */

/** Comment below the title of a page, with the sources of its text. */
export const generatedNote = (from: string): string =>
  `<!-- Generated from ${from}; do not edit. \`npx vitest run test/golden/reference.test.ts --update\` generates it again. -->`;

export const codeSpan = (text: unknown): string =>
  `\`${typeof text === "string" ? text : JSON.stringify(text)}\``;

export const tableRow = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |\n`;

export const markdownTable = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [heads, heads.map(() => "-"), ...rows].map(tableRow).join("");

/** Text in which `<prefix>` is a word and not a tag. */
export const plainText = (text: string): string => text.replaceAll("<", "&lt;");
