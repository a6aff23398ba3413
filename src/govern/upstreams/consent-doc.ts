/** A consent at an upstream as it is stored. Its tokens are encrypted. */
import type { StoredPrincipal } from "../roles.ts";

/** Encrypted text, and the id of its key. */
export type SealedText = { key: string; text: string };

export interface ConsentTokens {
  sealed: SealedText;
  issuer: string;
  scopes: string[];
  expires_ms: number | null;
  connected_ms: number;
  connected_by: string;
}

export interface UpstreamConsentDoc {
  id: string;
  upstream: string;
  /** Null for the service. */
  holder: StoredPrincipal | null;
  name: string;
  tenant: string | null;
  created_ms: number;
  link: { nonce: string; expires_ms: number; scopes: string[] } | null;
  /** A sign-in in progress, bound to its session. */
  flow: { state_hash: string; session_hash: string; expires_ms: number; sealed: SealedText } | null;
  tokens: ConsentTokens | null;
  /** Further scopes that the upstream asked for, by its tool. */
  wanted: Record<string, string[]>;
  /** The process that refreshes the tokens now. */
  refreshing: { by: string; expires_ms: number } | null;
  /** Tokens to revoke at the issuer, which no call uses. */
  ended: { sealed: SealedText; tries: number }[];
}
