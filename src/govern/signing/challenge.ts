/** Challenges: each is for one person and one act, is good once, and ends after five minutes. */
import { conflictError, TooManyError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { EngineCore } from "../core.ts";
import { isExpired } from "../expiry.ts";
import type { StateStore, StoreTx, UnitOfWork } from "../port/store.ts";
import type { ChallengeDoc } from "./passkey.ts";

const SWEPT = 100;

/** Stores a challenge, and deletes expired ones. */
export async function storeChallenge(
  core: Pick<EngineCore, "store" | "env">,
  nonce: string,
  { owner, payload }: Omit<ChallengeDoc, "expires_ms">,
): Promise<number> {
  const now = core.env.now();
  const expires_ms = now + SERVICE_LIMITS.challenge_ms;
  const ended = await endedChallenges(core.store, now);
  const open = await core.store.list("challenges", { owner, from: now, limit: SERVICE_LIMITS.challenges });
  if (open.length >= SERVICE_LIMITS.challenges)
    throw new TooManyError("too many challenges are open; sign one, or wait until they end", 60);
  const unit: UnitOfWork<void> = {
    run(tx) {
      for (const key of ended) tx.delete("challenges", key);
      tx.put("challenges", nonce, { owner, payload, expires_ms });
    },
  };
  await core.store.transact(unit);
  return expires_ms;
}

async function endedChallenges(store: StateStore, now: number): Promise<string[]> {
  const rows = await store.list("challenges", { to: now, order: "asc", limit: SWEPT });
  return rows.map(({ key }) => key);
}

/** Uses a challenge up. Throws if it is unknown, used, expired or another person's. */
export function useChallenge(core: EngineCore, tx: StoreTx, nonce: string, owner: string): ChallengeDoc {
  const found = tx.get("challenges", nonce);
  if (found === undefined || found.owner !== owner || isExpired(found, core.env.now()))
    throw conflictError(
      "challenge_used",
      "the challenge is used, has expired or is not yours; ask for a new one and sign again",
    );
  tx.delete("challenges", nonce);
  return found;
}
