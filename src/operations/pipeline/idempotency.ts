/**
 * Idempotency-Key support. The first response is stored in the same transaction as its change, and repeated on a retry.
 */
import type { EngineCore } from "../../govern/core.ts";
import type { RunFacts } from "../../govern/decide/load-facts.ts";
import type { UnitOfWork } from "../../govern/port/store.ts";
import { conflictError, invalidError } from "../../kernel/errors.ts";
import { keyedHash, sha256Hex } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { needsOf } from "../../store/batch.ts";

type Replied<T> = { replayed: true; body: JsonValue } | { replayed: false; result: T };

export interface ReplyScope {
  key: string;
  /** The operation and, for an outcome, the step. */
  operation: string;
  run: RunFacts;
  request: JsonValue;
}

export function withReply<T>(
  core: EngineCore,
  unit: UnitOfWork<T>,
  scope: ReplyScope,
  bodyOf: (result: T) => JsonValue,
): UnitOfWork<Replied<T>> {
  if (scope.key === "" || scope.key.length > SERVICE_LIMITS.idempotency_key_chars) {
    throw invalidError(`Idempotency-Key: 1 to ${SERVICE_LIMITS.idempotency_key_chars} characters`);
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
          throw conflictError(
            "idempotency_key_reused",
            "this Idempotency-Key was already used with a different request; repeat that request unchanged, or use a new key",
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
