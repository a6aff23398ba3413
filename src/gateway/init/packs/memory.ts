/** Manifests for the memory server: additions to the graph are removed, and deleted entities are created again. */
import { type ManifestPack, type PackEntry, type PackRule, READ_BACK_RETRIES } from "./pack.ts";

const read: PackEntry = { effect: "read" };
const entity = { names: ["$args.entities[0].name"] };
const observed = { names: ["$args.observations[0].entityName"] };
const from = { names: ["$args.relations[0].from"] };

/** Limits a list to one item, because an undo template cannot iterate over a list. */
const one = (tool: string, list: string): PackRule => ({
  id: `one-a-call-${tool.replaceAll("_", "-")}`,
  tool,
  when: [{ path: `$args.${list}[1]`, op: "exists" }],
  action: "deny",
  reason: `only one item in ${list} per call, so that it can be undone`,
});

export const memoryPack: ManifestPack = {
  tried: "@modelcontextprotocol/server-memory 2026.8.31",
  tools: {
    create_entities: "ec775426e23d732f",
    create_relations: "d30332bba87dcb96",
    add_observations: "2b766c0d39313745",
    delete_entities: "f10c8bb92cf2e806",
    delete_observations: "dcf2c875a06d0076",
    delete_relations: "47cbb5fe00e65c4a",
    read_graph: "40e117ffe9b4cbff",
    search_nodes: "e10d0183609f35df",
    open_nodes: "e890ac53436a186a",
  },
  entries: {
    read_graph: read,
    search_nodes: read,
    open_nodes: read,
    create_entities: {
      effect: "reversible",
      before: { tool: "open_nodes", args: entity, absent: { entities: [] } },
      compensation: {
        tool: "open_nodes",
        args: entity,
        kind: "inverse",
        when_absent: { tool: "delete_entities", args: { entityNames: ["$args.entities[0].name"] } },
      },
      verification: {
        tool: "open_nodes",
        args: entity,
        expect: { entities: "$before.entities" },
        ...READ_BACK_RETRIES,
      },
      note: "the server leaves an existing entity unchanged, so its undo only reads",
    },
    create_relations: {
      effect: "reversible",
      before: { tool: "open_nodes", args: from },
      compensation: { tool: "delete_relations", kind: "inverse", args: { relations: "$result.relations" } },
      verification: {
        tool: "open_nodes",
        args: from,
        expect: { relations: "$before.relations" },
        ...READ_BACK_RETRIES,
      },
    },
    add_observations: {
      effect: "reversible",
      before: { tool: "open_nodes", args: observed },
      compensation: {
        tool: "delete_observations",
        kind: "inverse",
        args: {
          deletions: [
            {
              entityName: "$args.observations[0].entityName",
              observations: "$result.results[0].addedObservations",
            },
          ],
        },
      },
      verification: {
        tool: "open_nodes",
        args: observed,
        expect: { entities: "$before.entities" },
        ...READ_BACK_RETRIES,
      },
    },
    delete_entities: {
      effect: "compensable",
      before: { tool: "open_nodes", args: { names: "$args.entityNames" } },
      compensation: {
        tool: "create_entities",
        args: { entities: "$before.entities" },
        residue: ["the relations of the deleted entities", "the entities move to the end of the graph"],
      },
      verification: {
        tool: "open_nodes",
        args: { names: "$args.entityNames" },
        expect: { entities: "$before.entities" },
        ...READ_BACK_RETRIES,
      },
    },
    delete_observations: {
      effect: "irreversible",
      note: "adding them again would change their position and could create one that never existed",
    },
    delete_relations: {
      effect: "irreversible",
      note: "creating them again would change their position and could create one that never existed",
    },
  },
  rules: [
    one("create_entities", "entities"),
    one("create_relations", "relations"),
    one("add_observations", "observations"),
  ],
};
