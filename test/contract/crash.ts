/**
 * SIGKILL in the middle of load. Every answered write must be there, with its document. An unanswered one
 * can be there or not, but never half of it.
 */
import { describe, expect, it } from "vitest";
import { seeded } from "../support/env.ts";
import { aMoment } from "../support/until.ts";
import { expectWhole } from "./chain.ts";
import { append } from "./samples.ts";
import type { Bench } from "./store.ts";
import { StoreProcess } from "./worker-client.ts";

const TRIALS = Number(process.env.SVC_TEST_CRASHES ?? 4);

export function crashTests(bench: Bench): void {
  describe("after SIGKILL under load", () => {
    it(`nothing that was answered for is lost (${TRIALS} trials)`, {
      timeout: 600_000 + TRIALS * 5_000,
    }, async () => {
      const random = seeded(3);
      const place = await bench.place();
      for (let trial = 0; trial < TRIALS; trial++) {
        const [process] = await StoreProcess.start(1, place.settings!);
        void process!.ask("load", { writers: 16, label: `t${trial}` }).catch(() => {});
        // A trial without an answer would prove nothing.
        await process!.acked(1 + Math.floor(random() * 40));
        await aMoment(random() * 20);
        await process!.kill();
        expect(process!.acks.length).toBeGreaterThan(0);

        const store = await place.open();
        const records = await expectWhole(store);
        for (const { seq, hash, key } of process!.acks) {
          expect(records[seq]).toMatchObject({ hash, run_id: key });
        }
        const written = records.filter(({ event }) => event === "intended");
        const docs = await store.list("meta", { limit: Number.MAX_SAFE_INTEGER });
        const expected = written.map(({ seq, hash, run_id }) => [run_id, { seq, hash }]);
        expect(Object.fromEntries(docs.map(({ key, doc }) => [key, doc]))).toEqual(
          Object.fromEntries(expected),
        );
        await append(store, { event: "halted" });
        await store.close();
      }
    });
  });
}
