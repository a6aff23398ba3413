/** The sqlite store, held to the contract. */
import { sqlitePlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("sqlite", sqlitePlace, { durable: true, sql: true });
