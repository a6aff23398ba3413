/**
 * Manifests for the sqlite server: a row with a known `id` is deleted, inserted again or restored. Free SQL needs
 * approval.
 */
import { type ManifestPack, type PackEntry, READ_BACK_RETRIES } from "./pack.ts";

const read: PackEntry = { effect: "read" };
const row = (id: string) => ({ table: "$args.table", conditions: { id } });
const [made, named] = [row("$args.data.id"), row("$args.conditions.id")];

const TRIGGERS = "changes by triggers and cascades in other rows";
const ALIKE = "other rows with the same `id`, if it is not a key";
const INFINITE = "infinite numbers, which the server shows as NULL";
const BLOBS = "the server cannot write blobs or generated columns, so the undo of such a row fails";

/** Compares the row with its previous state. The server rounds integers over 2^53; such an answer restores nothing. */
const restored = { tool: "read_records", args: named, expect: "$before", ...READ_BACK_RETRIES };

export const sqlitePack: ManifestPack = {
  tried: "mcp-sqlite 1.0.9",
  tools: {
    db_info: "b5ea28f3a066e246",
    query: "c4e9ea5dfa59c30a",
    list_tables: "b5ea28f3a066e246",
    get_table_schema: "f7782067cd3db33e",
    create_record: "eb305ccea84b1e9e",
    read_records: "3ad6e7343b447cdf",
    update_records: "97f58eb97bb2c387",
    delete_records: "28e18dcc4469da42",
  },
  entries: {
    db_info: read,
    list_tables: read,
    get_table_schema: read,
    read_records: read,
    create_record: {
      effect: "compensable",
      card: { title: "Add a row to {$args.table}" },
      before: { tool: "read_records", args: { ...made, limit: 1 }, absent: [], required: false },
      compensation: {
        tool: "delete_records",
        // Never resolves, because the read returns one row at most. If a row with this `id` already existed, the call
        // therefore has no undo.
        args: row("$before[1].id"),
        residue: [TRIGGERS, "the counter of an AUTOINCREMENT key"],
        when_absent: { tool: "delete_records", args: made },
      },
      verification: { ...restored, args: made },
      note: "calls without `data.id` pass and cannot be undone",
    },
    update_records: {
      effect: "compensable",
      card: { title: "Change rows of {$args.table}" },
      before: { tool: "read_records", args: named, required: false },
      compensation: {
        tool: "update_records",
        args: { ...named, data: "$before[0]" },
        residue: [ALIKE, TRIGGERS, INFINITE],
      },
      verification: restored,
      note: `without \`conditions.id\` it cannot be undone; ${BLOBS}`,
    },
    delete_records: {
      effect: "compensable",
      card: { title: "Delete rows of {$args.table}" },
      before: { tool: "read_records", args: named, required: false },
      compensation: {
        tool: "create_record",
        args: { table: "$args.table", data: "$before[0]" },
        residue: [ALIKE, TRIGGERS, INFINITE, "the row's position in a table without an integer key"],
      },
      verification: restored,
      note: `without \`conditions.id\` it cannot be undone; ${BLOBS}`,
    },
    query: {
      effect: "irreversible",
      card: { title: "Run SQL: {$args.sql}" },
      note: "it runs any SQL statement; to read rows, use read_records",
    },
  },
  rules: [
    {
      id: "row-without-an-id",
      tool: "create_record",
      when: [{ path: "$args.data.id", op: "eq", value: null }],
      action: "deny",
      reason: "with an `id` of null the new row cannot be identified: set it, or leave it out",
    },
    {
      id: "id-stays-as-it-is",
      tool: "update_records",
      when: [{ path: "$args.data.id", op: "exists" }],
      action: "deny",
      reason: "the undo could not find a row whose `id` changed",
    },
    ...["update_records", "delete_records"].map((tool) => ({
      id: `many-rows-need-a-person-${tool.replaceAll("_", "-")}`,
      tool,
      when: [{ path: "$args.conditions.id", op: "absent" }],
      action: "require_approval" as const,
      reason: "without an `id` any number of rows can change, and none can be restored",
    })),
  ],
};
