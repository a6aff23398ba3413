/** A call as a policy sees it. A test names only the members it is about. */
import type { PolicyCall } from "../../src/rules/policy/call.ts";

export const policyCall = (fields: Partial<PolicyCall>): PolicyCall => ({
  tool: "t",
  args: {},
  actor: "a",
  tenant: null,
  environment: null,
  effect: null,
  data_class: null,
  blast_radius: null,
  source: [],
  sink: [],
  step: 0,
  run_id: "r",
  ...fields,
});
