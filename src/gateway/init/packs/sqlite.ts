/** The sqlite server: one row, named by its `id`, is taken out, put back or written back. Free SQL needs a person. */
import { type Pack, type PackEntry, patient } from "./pack.ts";

const read: PackEntry = { effect: "read" };
const row = (id: string) => ({ table: "$args.table", conditions: { id } });
const [made, named] = [row("$args.data.id"), row("$args.conditions.id")];

const TRIGGERS = "what triggers and cascades did in other rows";
const ALIKE = "other rows with the same `id`, in a table where it is no key";
const INFINITE = "infinite numbers, which the server shows as NULL";
const BLOBS = "the server writes no blobs and no generated columns: the undo of a row with such fails";

/** What the server shows of the row is what it was; integers over 2^53 it rounds, and such an answer restores nothing. */
const restored = { tool: "read_records", args: named, expect: "$before", ...patient };

export const sqlite: Pack = {
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
        // A second row of one: it is never there, so that a row whose `id` another had before cannot be taken back.
        args: row("$before[1].id"),
        residue: [TRIGGERS, "the counter of an AUTOINCREMENT key"],
        when_absent: { tool: "delete_records", args: made },
      },
      verification: { ...restored, args: made },
      note: "calls that leave out `data.id` pass and cannot be taken back",
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
      note: `without \`conditions.id\` it cannot be taken back; ${BLOBS}`,
    },
    delete_records: {
      effect: "compensable",
      card: { title: "Delete rows of {$args.table}" },
      before: { tool: "read_records", args: named, required: false },
      compensation: {
        tool: "create_record",
        args: { table: "$args.table", data: "$before[0]" },
        residue: [ALIKE, TRIGGERS, INFINITE, "the row's place in a table without an integer key"],
      },
      verification: restored,
      note: `without \`conditions.id\` it cannot be taken back; ${BLOBS}`,
    },
    query: {
      effect: "irreversible",
      card: { title: "Run SQL: {$args.sql}" },
      note: "it runs whatever SQL it is given; read_records reads without it",
    },
  },
  rules: [
    {
      id: "row-without-an-id",
      tool: "create_record",
      when: [{ path: "$args.data.id", op: "eq", value: null }],
      action: "deny",
      reason: "an `id` of null shows nobody which row was made: state it, or leave it out",
    },
    {
      id: "id-stays-as-it-is",
      tool: "update_records",
      when: [{ path: "$args.data.id", op: "exists" }],
      action: "deny",
      reason: "a row whose `id` is changed would not be found again by its undo",
    },
    ...["update_records", "delete_records"].map((tool) => ({
      id: `many-rows-need-a-person-${tool.replaceAll("_", "-")}`,
      tool,
      when: [{ path: "$args.conditions.id", op: "absent" }],
      action: "require_approval" as const,
      reason: "without an `id` any number of rows is changed, and none can be taken back",
    })),
  ],
};
