/** The postgres store, held to the contract. */
import { postgresPlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("postgres", postgresPlace, { durable: true, sql: true });
