/** The time that a record may take, what a machine without the contents says, and when contents are removed. */
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { singleCall } from "../resident/services.ts";
import { ContentStore, recordFolder } from "./content-store.ts";
import { EarlyRecord } from "./early-record.ts";
import { SNAPSHOT_DEFAULTS } from "./record-scope.ts";
import { closeCall, openCall } from "./recorded-call.ts";
import { startSweeping } from "./sweep-deleted.ts";
import { undoRecord } from "./undo-record.ts";
import { createWorkspaceRecords, type WorkspaceRecords } from "./workspace-records.ts";

const place = { folder: tempDir("call"), snapshot: SNAPSHOT_DEFAULTS };
const command = (more: { arrived_ms: number; limit_ms: number }) => ({
  ...{ session: "s", cwd: place.folder, command: { cwd: place.folder }, files: [], tool: "code.shell_write" },
  ...more,
});

it("gives a record the time until 5 s before the client's limit, counted from the event", async () => {
  verifies("beyond.record.told");
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
  const waits: number[] = [];
  const records = {
    begin: async (_: string, __: unknown, { wait_ms }: { wait_ms: number }) => {
      waits.push(wait_ms);
      return { problem: "the record was not ready in time" };
    },
  } as unknown as WorkspaceRecords;
  const context = { ...singleCall(place.folder), records };
  for (const arrived_ms of [1_000_000, 998_000])
    expect(await openCall(context, place, command({ arrived_ms, limit_ms: 30_000 }))).toMatchObject({
      window: null,
      problem: "the record was not ready in time",
    });
  expect(waits).toEqual([25_000, 23_000]);
  vi.useRealTimers();
});

it("gives up a record that has no time left", async () => {
  verifies("beyond.record.told");
  const records = createWorkspaceRecords({ folder: place.folder });
  records.meet("s", place.folder, SNAPSHOT_DEFAULTS);
  const begin = await records.begin("s", SNAPSHOT_DEFAULTS, { does: "write", wait_ms: 0 });
  expect(begin).toEqual({ problem: "the record was not ready in time" });
  expect(records.open).toBe(0);
  await records.close();
});

it.each([
  ["the edit's own text", "new text", "old"],
  ["another's text", "something else", "something else"],
])("undoes an edit during a command only if the file holds %s", async (_, left, expected) => {
  verifies("beyond.record.overlap", "beyond.record.edits");
  const cwd = realpathSync(tempDir("overlap"));
  const file = join(cwd, "a");
  writeFileSync(file, "old");
  const records = createWorkspaceRecords({ folder: place.folder });
  records.meet("s", cwd, SNAPSHOT_DEFAULTS);
  await records.begin("s", SNAPSHOT_DEFAULTS, { does: "write", wait_ms: 60_000 });
  const context = { ...singleCall(place.folder), records };
  const call = { session: "s", cwd, command: null, files: [file], tool: "code.edit" };
  const { window, edit } = await openCall(context, place, { ...call, arrived_ms: 0, limit_ms: 0 });
  writeFileSync(file, left);
  const note = { run: "r", tool: "code.edit", edit, window: window! };
  const end = await closeCall(context, place, note, ["new text"]);
  undoRecord(place.folder, end!.before.record.name, { skip: [], overwrite: false });
  expect(readFileSync(file, "utf8")).toBe(expected);
  await records.close();
});

it.each([
  ["was refused", (early: EarlyRecord) => early.giveBack(), []],
  ["ran", (early: EarlyRecord) => early.take(), ["a"]],
])("counts a command that began during another one only if it %s", async (_, settle, contested) => {
  verifies("beyond.record.overlap");
  const cwd = realpathSync(tempDir("early"));
  writeFileSync(join(cwd, "a"), "old");
  const records = createWorkspaceRecords({ folder: place.folder });
  records.meet("s", cwd, SNAPSHOT_DEFAULTS);
  const context = { ...singleCall(place.folder), records };
  const call = { ...command({ arrived_ms: Date.now(), limit_ms: 60_000 }), cwd, command: { cwd } };
  const { window } = await openCall(context, place, call);
  const early = new EarlyRecord(context, place, call);
  await vi.waitFor(() => expect(records.open).toBe(2));
  await settle(early);
  await vi.waitFor(() => expect(records.open).toBe(2 - (contested.length === 0 ? 1 : 0)));
  writeFileSync(join(cwd, "a"), "new");
  const end = await records.end(window!, "r", 60_000);
  expect(end?.contested).toEqual(contested);
  await records.close();
});

it("names the machine that has the contents", () => {
  verifies("beyond.record.other-machine");
  const name = `rec_${"0".repeat(32)}@laptop.example`;
  expect(undoRecord(place.folder, name, { skip: [], overwrite: false })).toEqual({
    error: "the recorded contents are on laptop.example",
    left: [],
  });
});

it("removes the contents of deleted runs at the start and every hour, until it is stopped", async () => {
  verifies("beyond.record.retention");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = tempDir("sweeping");
  new ContentStore(recordFolder(folder), true);
  const sweep = vi.fn(async () => {});
  const stop = startSweeping(folder, { sweep }, () => {
    throw new Error("no run is recorded");
  });
  await vi.waitFor(() => expect(sweep).toHaveBeenCalledTimes(1));
  vi.advanceTimersByTime(60 * 60 * 1_000);
  await vi.waitFor(() => expect(sweep).toHaveBeenCalledTimes(2));
  stop();
  vi.advanceTimersByTime(3 * 60 * 60 * 1_000);
  expect(sweep).toHaveBeenCalledTimes(2);
});
