/** The memory store, held to the contract. */
import { memoryPlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("memory", memoryPlace, { durable: false, sql: false });
