/** Adds a test to a policy's text and preserves the author's wording, order and comments. */

import { Document, isMap, isSeq, parseDocument } from "yaml";
import { invalidError } from "../../../kernel/errors.ts";
import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import { asJson } from "../../../kernel/json/json.ts";
import { loadPolicy } from "../load.ts";
import type { PolicyTestDoc } from "../schema.ts";

export function addTestToPolicy(text: string, test: PolicyTestDoc): string {
  const before = loadPolicy(text, "policy");
  const wanted = toCanonicalJson(
    asJson({
      ...before,
      tests: [...(before.tests ?? []), test],
    }),
  );
  for (const write of [inPlace, rewritten]) {
    const after = write(text, test);
    if (after !== null && readsAs(after, wanted)) return after;
  }
  throw invalidError("the test could not be written into this policy; add it by hand");
}

/** Parses the result again, so that a policy with another meaning is never returned. */
function readsAs(text: string, wanted: string): boolean {
  try {
    return toCanonicalJson(asJson(loadPolicy(text, "policy"))) === wanted;
  } catch {
    return false;
  }
}

/** Inserts after the last test with its indentation, or at the end of the text. */
function inPlace(text: string, test: PolicyTestDoc): string | null {
  const { contents } = parsed(text);
  if (!isMap(contents) || contents.flow) return null;
  const tests = contents.get("tests", true);
  const line = `- ${inOneLine(test)}\n`;
  if (tests === undefined) return `${ended(text)}tests:\n  ${line}`;
  const [first] = isSeq(tests) && !tests.flow ? tests.items : [];
  const start = (first as { range?: [number, number, number] } | undefined)?.range?.[0];
  if (!isSeq(tests) || start === undefined || tests.range == null) return null;
  const indent = /(?:^|\n)( *)- *$/.exec(text.slice(0, start))?.[1];
  if (indent === undefined) return null;
  const end = tests.range[1];
  return `${ended(text.slice(0, end))}${indent}${line}${text.slice(end)}`;
}

function rewritten(text: string, test: PolicyTestDoc): string {
  const document = parsed(text);
  if (document.has("tests")) document.addIn(["tests"], document.createNode(test));
  else document.set("tests", document.createNode([test]));
  return document.toString({ lineWidth: 0 });
}

/** An earlier read has rejected duplicate keys; the library's check compares each key with all others. */
const parsed = (text: string) => parseDocument(text, { uniqueKeys: false });
const ended = (text: string): string => (text.endsWith("\n") ? text : `${text}\n`);

function inOneLine(test: PolicyTestDoc): string {
  const how = { collectionStyle: "flow", flowCollectionPadding: false, lineWidth: 0 } as const;
  return new Document(test).toString(how).trim().replaceAll("\n", " ");
}
