/** The contract tests on the memory store. */
import { memoryPlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("memory", memoryPlace, { durable: false, sql: false });
