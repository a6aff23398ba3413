/** Which texts are parsed in place, where parsing delays decisions, and which in a thread. */
import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { isParsedInPlace } from "./parse.ts";
import type { ParseTask } from "./parse-tasks.ts";

const typed = { tool: "", args: "", actor: "", repeat: "" } as Extract<ParseTask, { read: "trial" }>["typed"];
/** A task of each kind whose text has this length. */
const TASKS: Readonly<Record<string, (text: string) => ParseTask>> = {
  policy: (text) => ({ read: "policy", text, file: "p" }),
  "a checked policy": (text) => ({ read: "checked_policy", text, active: null, labels: [], now_ms: 0 }),
  warnings: (text) => ({ read: "policy_warnings", policy: { text, file: "p" }, labels: [], now_ms: 0 }),
  claims: (text) => ({ read: "claims", text, file: "p", labels: [], now_ms: 0 }),
  "a comparison": (text) => ({
    read: "policy_diff",
    a: { text, file: "a" },
    b: { text, file: "b" },
    labels: [],
    now_ms: 0,
  }),
  "a trial": (text) => ({ read: "trial", text, typed, labels: [], now_ms: 0 }),
  "a kept test": (text) => ({
    read: "kept_test",
    text,
    test: { name: "t", input: { tool: "t" }, expect: "allow" },
  }),
  manifests: (text) => ({ read: "manifests", files: [{ file: "m", text }] }),
  "several manifests": (text) => ({
    read: "manifests",
    files: [
      { file: "a", text: text.slice(0, text.length / 2) },
      { file: "b", text: text.slice(text.length / 2) },
    ],
  }),
  "a draft": (yaml) => ({ read: "draft", given: { yaml } }),
  "a draft as an object": (tool) => ({ read: "draft", given: { manifest: { tool } } }),
  "a draft of many members": (text) => ({
    read: "draft",
    given: { manifest: Object.fromEntries([...text].map((_, i) => [`k${i}`, 1])) },
  }),
  "a draft that moves": (yaml) => ({ read: "moved", yaml, to: "approved" }),
};

it.each(Object.entries(TASKS))("parses %s of 4,097 characters in a thread", (_, task) => {
  verifies("beyond.heavy.parsed-in-place");
  expect(isParsedInPlace(task("a".repeat(4_097)))).toBe(false);
});

it("counts each pass over a draft", () => {
  verifies("beyond.heavy.parsed-in-place");
  const draft = (chars: number) => isParsedInPlace(TASKS["a draft"]!("a".repeat(chars)));
  expect([draft(1_024), draft(1_025)]).toEqual([true, false]);
});
