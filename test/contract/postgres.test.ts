/** The contract tests on the postgres store. */
import { verifies } from "../support/verifies.ts";
import { postgresPlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("postgres", postgresPlace, { durable: true, sql: true });

// In the suite: SQL against the ledger is refused.
verifies("core.store.postgres-append-only", "core.purpose.ledger-append-only");
