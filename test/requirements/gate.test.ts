/** The gate: each statement of the interface is either verified by a test or on the pending list, never both. */
import { describe, expect, it } from "vitest";
import { REQUIREMENTS } from "./index.ts";
import { literalArguments, readPending, scanTests } from "./scan.ts";

const known = new Set<string>(REQUIREMENTS.map(({ id }) => id));
const pending = readPending();
const { mentions, unreadable } = scanTests();
const verified = new Set(mentions.map(({ id }) => id));

describe("requirements gate", () => {
  it("can read every verifies call: ids are string literals", () => {
    expect(unreadable, "write the ids into the call itself, as strings").toEqual([]);
  });

  it("knows every id that a test names", () => {
    const unknown = mentions.filter(({ id }) => !known.has(id)).map(({ id, where }) => `${id} at ${where}`);
    expect(unknown, "no such requirement; look for the right id in test/requirements").toEqual([]);
  });

  it("has every statement verified or pending", () => {
    const open = new Set(pending);
    const nowhere = [...known].filter((id) => !verified.has(id) && !open.has(id));
    expect(nowhere, "no test verifies these any more; write one, the pending list only shrinks").toEqual([]);
  });

  it("has no statement both verified and pending", () => {
    const both = pending.filter((id) => verified.has(id));
    expect(both, 'verified now: run "npm run requirements -- --prune" to take them off pending.txt').toEqual(
      [],
    );
  });

  it("has only known statements pending", () => {
    const unknown = pending.filter((id) => !known.has(id));
    expect(unknown, "pending.txt names requirements that do not exist; remove the lines").toEqual([]);
  });

  it("has each id once", () => {
    expect(known.size, "two sections share an id").toBe(REQUIREMENTS.length);
    expect(new Set(pending).size, "pending.txt names an id twice").toBe(pending.length);
  });

  it("names every statement after its document", () => {
    const prefix = { core: "core.", operations: "ops.", contract: "contract.", beyond: "beyond." } as const;
    const odd = REQUIREMENTS.filter(
      ({ id, source }) => !id.startsWith(prefix[source]) || !/^[a-z0-9.-]+$/.test(id),
    );
    expect(odd.map(({ id }) => id)).toEqual([]);
  });
});

describe("reading a verifies call", () => {
  it.each([
    ['("a.b")', ["a.b"]],
    ["('a')", ["a"]],
    ['(\n  "a",\n  "b",\n)', ["a", "b"]],
    ["()", undefined],
    ["(id)", undefined],
    ['("a", id)', undefined],
    ['("a" + b)', undefined],
  ])("%j", (text, ids) => {
    expect(literalArguments(text, 1)).toEqual(ids);
  });
});
