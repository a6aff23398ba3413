import fc from "fast-check";
import { expect, it } from "vitest";
import { globMatches } from "../../kernel/text/glob.ts";
import { HALT_FIELDS, type StoredHalt } from "../approvals/approval.ts";
import { haltsCovering } from "./halt-index.ts";

const name = fc.constantFrom("a", "b", "ab", "ba");
const pattern = fc.option(fc.constantFrom("a", "b", "ab", "a*", "*", "{a,b}", "?b"), { nil: null });
const halt = fc.record({ tool: pattern, actor: pattern, tenant: pattern, environment: pattern });
const values = fc.record({
  tool: name,
  actor: name,
  tenant: fc.option(name, { nil: null }),
  environment: fc.option(name, { nil: null }),
});

it("finds exactly the halts whose every pattern matches, in their order", () => {
  fc.assert(
    fc.property(fc.array(halt, { maxLength: 12 }), values, (scopes, call) => {
      const halts = scopes.map(
        (scope, i): StoredHalt => ({ id: `h${i}`, reason: "", scope, by: "", created_ms: 0 }),
      );
      const plainly = halts.filter(({ scope }) =>
        HALT_FIELDS.every((field) => {
          const wanted = scope[field];
          const value = call[field];
          return wanted === null || wanted === "*" || (value !== null && globMatches(wanted, value));
        }),
      );
      expect(haltsCovering(halts, call)).toEqual(plainly);
    }),
    { numRuns: 500 },
  );
});
