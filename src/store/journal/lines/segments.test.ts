import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { tempDir } from "../../../../test/support/tmp.ts";
import { closeDatabase, openDatabase } from "../connection.ts";
import { migrateCheckpoint } from "../schema.ts";
import type { LineInfo } from "./block.ts";
import { SEGMENT_RECORDS, SegmentReader, writeSegments } from "./segments.ts";

const line = (tenant: LineInfo["tenant"]): LineInfo => ({
  ...{ length: 10, ts_ms: 0, event: "intended", actor: "bot", run_id: "r", tool: "t" },
  tenant,
});

describe("the tenants of segments", () => {
  const db = openDatabase(join(tempDir(), "state.db"), {
    synchronous: "FULL",
    autocheckpoint: false,
    cache_kib: 100,
  });
  afterAll(() => closeDatabase(db));
  migrateCheckpoint(db, "state.db");
  const others = Array.from({ length: SEGMENT_RECORDS }, () => line("globex"));
  const segments = new SegmentReader(db);
  const write = (number: number, lines: LineInfo[]) =>
    writeSegments(db, number * SEGMENT_RECORDS, number * SEGMENT_RECORDS * 10, lines);
  const near = (number: number, order: "asc" | "desc") => {
    const found = segments.nextWith("tenant", "acme", number * SEGMENT_RECORDS, order);
    return found === undefined ? undefined : found / SEGMENT_RECORDS;
  };
  const places = (number: number) =>
    segments.places("tenant", "acme", segments.at(number * SEGMENT_RECORDS)!).length;

  it("lead past those that hold none of a tenant's records", () => {
    for (let number = 0; number < 6; number++) write(number, others);
    write(2, [line("acme"), ...others.slice(1)]);
    expect([near(0, "asc"), near(3, "asc"), near(5, "desc"), near(1, "desc")]).toEqual([
      2,
      undefined,
      2,
      undefined,
    ]);
    expect([places(2), places(3)]).toEqual([1, 0]);
  });

  it("are taken for anybody's where a version wrote them that did not say, also after this one did", () => {
    write(6, [line(null), ...others.slice(1)]);
    write(7, others);
    expect([near(5, "asc"), near(7, "asc"), near(7, "desc"), near(6, "desc")]).toEqual([5, undefined, 6, 6]);
    expect([places(6), places(7), places(5), places(2)]).toEqual([SEGMENT_RECORDS, 0, 0, 1]);
  });

  it("are taken for anybody's also where some of the records do say", () => {
    write(8, [line(null), line("acme"), ...others.slice(2)]);
    expect([near(8, "asc"), places(8)]).toEqual([8, SEGMENT_RECORDS]);
  });
});
