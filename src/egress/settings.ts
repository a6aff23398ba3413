/** The `egress:` section of the configuration, and its description on the Settings page. */
export interface EgressSettings {
  /** Host patterns. Undefined allows every host, an empty list allows none. */
  readonly allow?: readonly string[] | undefined;
  readonly block_private: boolean;
  readonly region?: string | null | undefined;
  /** Hosts and addresses that can be reached although they are private, loopback or metadata addresses. */
  readonly literal?: readonly string[] | undefined;
}

export interface EgressDescription {
  /** Whether the configuration adds restrictions to the built-in rules. */
  readonly in_force: boolean;
  readonly allow: readonly string[] | null;
  readonly block_private: boolean;
  readonly region: string | null;
  readonly sentences: readonly string[];
}

export function describeEgress(settings: EgressSettings): EgressDescription {
  const allow = settings.allow ?? null;
  const sentences = [
    allow === null
      ? "Any host may be reached."
      : allow.length === 0
        ? "No host may be reached: the allow list is empty."
        : `Only these hosts may be reached: ${allow.join(", ")}.`,
    settings.block_private
      ? "Loopback, private and link-local addresses are refused."
      : "Private addresses may be reached.",
    "Cloud metadata addresses are always refused.",
  ];
  if (settings.region) sentences.push(`Region: ${settings.region}.`);
  return {
    in_force: allow !== null || settings.block_private,
    allow,
    block_private: settings.block_private,
    region: settings.region ?? null,
    sentences,
  };
}
