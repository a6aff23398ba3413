/**
 * Egress rules by name, and the refusals they cause. A message names the rule and the host but never the path or query,
 * because the path of a webhook is often its password.
 */
import { SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";

const EGRESS_RULES = {
  url: "it is not a URL",
  scheme: "only http and https are allowed",
  userinfo: "the URL contains a user name or password; use a header instead",
  allow: "the host is not on the allow list (egress.allow)",
  private: "it resolves to a private address (egress.block_private)",
  metadata: "it resolves to a cloud metadata address",
  unresolved: "the host name does not resolve",
  redirects: `more than ${SERVICE_LIMITS.egress_redirects} redirects`,
  redirect_target: "the redirect has no usable URL",
  redirect_downgrade: "the redirect leads from https to http",
  redirect_method: "the redirect would turn the POST into a GET; configure the final URL",
  redirect_body: "the redirect would send the request's body to another host",
} as const;

export type RuleName = keyof typeof EGRESS_RULES;

export interface EgressRefusal {
  readonly rule: RuleName;
  readonly host: string;
  readonly message: string;
}

/** `detail` adds to the rule's own text, such as the kind of address. */
export function egressRefusal(
  rule: RuleName,
  host: string,
  region: string | null,
  detail?: string,
): EgressRefusal {
  const why = detail === undefined ? EGRESS_RULES[rule] : `${EGRESS_RULES[rule]}: ${detail}`;
  const where = region === null ? "" : ` (region ${region})`;
  return { rule, host, message: `egress rule "${rule}" refuses ${host}${where}: ${why}` };
}

/** The error for a refused destination. Callers do not retry it, because another attempt cannot help. */
export class EgressRefusedError extends SvcError {
  readonly refusal: EgressRefusal;

  constructor(refused: EgressRefusal) {
    super("delivery_failed", refused.message, { cause_code: "egress_refused" });
    this.name = "EgressRefused";
    this.refusal = refused;
  }
}
