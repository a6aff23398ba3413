/** The contract tests on the sqlite store. */
import { verifies } from "../support/verifies.ts";
import { sqlitePlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("sqlite", sqlitePlace, { durable: true, sql: true });

// In the suite: a new place gets its tables, several processes race for approvals, SQL on the ledger is refused.
verifies("core.store.sqlite-append-only", "core.purpose.shared-approvals", "core.version.migrations");
