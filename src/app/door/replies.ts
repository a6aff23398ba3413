/** Idempotency-Key: the first answer is kept with the very change it tells of, and given again to a retry. */
import type { Core } from "../../engine/core.ts";
import type { RunFacts } from "../../engine/gather.ts";
import { conflict, invalid } from "../../kernel/errors.ts";
import { keyedHash, sha256Hex } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Unit } from "../../port/store.ts";
import { needsOf } from "../../store/batch.ts";

type Replied<T> = { replayed: true; body: Json } | { replayed: false; result: T };

export interface ReplyScope {
  key: string;
  /** The operation and, for an outcome, the step. */
  operation: string;
  run: RunFacts;
  request: Json;
}

export function withReply<T>(
  core: Core,
  unit: Unit<T>,
  scope: ReplyScope,
  bodyOf: (result: T) => Json,
): Unit<Replied<T>> {
  if (scope.key === "" || scope.key.length > LIMITS.idempotency_key_chars) {
    throw invalid(`Idempotency-Key: 1 to ${LIMITS.idempotency_key_chars} characters`);
  }
  const address = sha256Hex(
    JSON.stringify([scope.run.principal, scope.run.run_id, scope.operation, scope.key]),
  );
  const request_hash = keyedHash(scope.run.salt, scope.request);
  return {
    needs: () => [...needsOf(unit), ["replies", address]],
    share: unit.share,
    keeps_places: unit.keeps_places,
    run(tx) {
      const first = tx.get("replies", address);
      if (first !== undefined) {
        if (first.request_hash !== request_hash) {
          throw conflict(
            "idempotency_key_reused",
            "this Idempotency-Key was already used with a different request; repeat that one as it was, or take a new key",
          );
        }
        return { replayed: true, body: first.body };
      }
      const result = unit.run(tx);
      tx.put("replies", address, {
        run_id: scope.run.run_id,
        request_hash,
        body: bodyOf(result),
        at_ms: core.env.now(),
      });
      return { replayed: false, result };
    },
  };
}
