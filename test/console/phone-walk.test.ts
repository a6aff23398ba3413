/** The whole way of a request on a phone: message, tap, card, signature, decision; and what can come in between. */
import { expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { walkPhone } from "./support/phone-walk.ts";

it("decides every card in a few taps after its message, and names changes in between", async () => {
  verifies("beyond.phone.walk");
  const walked = await walkPhone();
  expect(Object.fromEntries(walked.map(({ card, taps }) => [card, taps]))).toEqual({
    refund: 2,
    mail: 4,
    edit: 2,
    plan: 2,
    group: 3,
  });
});
