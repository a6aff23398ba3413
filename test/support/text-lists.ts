/** The lists in a text block of a page: a name with a colon, and below it the indented entries between double spaces. */
export function textLists(page: string, sentence: string): Record<string, string[]> {
  const text = page.split(sentence)[1]?.split("```text\n")[1]?.split("```")[0] ?? "";
  const lists: Record<string, string[]> = {};
  let name = "";
  for (const line of text.split("\n").filter(Boolean)) {
    if (line.startsWith(" ")) lists[name]!.push(...line.split("  ").flatMap((one) => one.trim() || []));
    else {
      name = line.replace(/:$/, "");
      lists[name] = [];
    }
  }
  return lists;
}
