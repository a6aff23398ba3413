/** The sqlite store, held to the contract. */
import { verifies } from "../support/verifies.ts";
import { sqlitePlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("sqlite", sqlitePlace, { durable: true, sql: true });

// In the suite: its tables are made on the first opening, several processes race for approvals, and SQL against the ledger is refused.
verifies("core.store.sqlite-append-only", "core.purpose.shared-approvals", "core.version.migrations");
