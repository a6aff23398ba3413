// What each record says about the one before it: in a whole ledger, and in one run taken out of a ledger.

import { Finding } from "./finding.js";
import { GENESIS } from "./record.js";

/** A whole ledger read so far. It takes the next record or throws; it never repairs and never skips. */
export class Chain {
  constructor() {
    this.count = 0;
    this.head = GENESIS;
    this.runs = new Map();
  }

  link(record) {
    if (record.seq !== this.count) {
      const how =
        record.seq > this.count
          ? "records are missing or out of order"
          : "a record is repeated or out of order";
      throw new Finding(`its seq is ${record.seq} where ${this.count} was due: ${how}`);
    }
    if (record.prev !== this.head) throw new Finding("its prev is not the hash of the record before it");
    if (record.run_id !== undefined) {
      const due = this.runs.get(record.run_id) ?? 0;
      if (record.run_seq !== due) {
        const how = record.run_seq > due ? "missing" : "repeated";
        throw new Finding(
          `its run_seq is ${record.run_seq} where ${due} was due: a record of the run is ${how}`,
        );
      }
      this.runs.set(record.run_id, due + 1);
    }
    this.count++;
    this.head = record.hash;
  }
}

/** The records of one run in order. Its neighbours in the ledger are mostly elsewhere, so only some links show. */
export class RunTrail {
  constructor() {
    this.count = 0;
    this.runId = null;
    this.last = null;
  }

  link(record) {
    if (this.last === null) {
      this.runId = record.run_id ?? null;
      if (record.seq === 0 && record.prev !== GENESIS) {
        throw new Finding("it is the first of the ledger and its prev is not 64 zeros");
      }
    } else if (record.seq <= this.last.seq) {
      throw new Finding("it is repeated or out of order");
    } else if (record.seq === this.last.seq + 1 && record.prev !== this.last.hash) {
      throw new Finding("its prev is not the hash of the record before it");
    }
    if (this.runId === null || record.run_id !== this.runId) throw new Finding("it belongs to another run");
    if (record.run_seq !== this.count) {
      throw new Finding(
        `its run_seq is ${record.run_seq} where ${this.count} was due: a record of the run is missing`,
      );
    }
    this.count++;
    this.last = record;
  }
}
