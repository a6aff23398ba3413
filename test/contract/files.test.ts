/** The files store, held to the contract. */
import { filesPlace } from "./place.ts";
import { describeStore } from "./store.ts";

describeStore("files", filesPlace, { durable: true, sql: false });
