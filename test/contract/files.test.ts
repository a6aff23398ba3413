/** The contract tests on the files store. */
import { verifies } from "../support/verifies.ts";
import { filesPlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("files", filesPlace, { durable: true, sql: false });

// In the suite: every answered write is there after SIGKILL under load.
verifies("contract.durable.answer-after");
