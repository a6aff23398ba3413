/** The faults of a cluster run, as data: what breaks, on which node, and how it ends. */
import type { Cluster, ClusterNode, Database } from "./nodes.ts";

export interface FaultPlace {
  cluster: Cluster;
  primary: Database;
  /** The standby that the primary waits for, and the other one. */
  waited: Database;
  other: Database;
  random(): number;
}

/** Breaks something for a while. It returns when the fault is over; the cluster recovers on its own from there. */
export type ClusterFault = (place: FaultPlace, lasts: () => Promise<void>) => Promise<void>;

const pick = <T>(random: () => number, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

/** A command that breaks a node, and the one that ends the fault. */
const between =
  (
    begin: string,
    end: string,
    node: (place: FaultPlace) => ClusterNode,
    peer?: (place: FaultPlace) => ClusterNode,
  ) =>
  async (place: FaultPlace, lasts: () => Promise<void>): Promise<void> => {
    const target = node(place);
    await place.cluster.run([begin, target, ...(peer === undefined ? [] : [peer(place)])]);
    try {
      await lasts();
    } finally {
      await place.cluster.run([end, target]);
    }
  };

const primary = (place: FaultPlace): Database => place.primary;
const waited = (place: FaultPlace): Database => place.waited;
const other = (place: FaultPlace): Database => place.other;
const server = ({ random }: FaultPlace): ClusterNode => pick(random, ["app1", "app2"]);

export const CLUSTER_FAULTS: Record<string, ClusterFault> = {
  "primary killed": between("kill", "start", primary),
  "primary's PostgreSQL crashed": async ({ cluster, primary }) => {
    await cluster.run(["crash", primary]);
  },
  "primary frozen": between("freeze", "thaw", primary),
  "primary cut off": between("cut", "heal", primary),
  "primary cut from its standby": between("cut", "heal", primary, waited),
  "primary's disk full": between("fill", "free", primary),
  "failover on purpose": async ({ cluster, waited }) => {
    await cluster.run(["switchover", waited]);
  },
  "standby killed": between("kill", "start", waited),
  "standby frozen": between("freeze", "thaw", waited),
  "standby cut off": between("cut", "heal", waited),
  "standby's disk full": between("fill", "free", waited),
  "other standby killed": between("kill", "start", other),
  "server killed": between("kill", "start", server),
  "server frozen": between("freeze", "thaw", server),
  "server cut from the primary": between("cut", "heal", server, primary),
  "primary and server killed": async (place, lasts) => {
    const both = [place.primary, server(place)];
    for (const node of both) await place.cluster.run(["kill", node]);
    await lasts();
    for (const node of both) await place.cluster.run(["start", node]);
  },
  "every database node killed": async ({ cluster, primary, waited, other }, lasts) => {
    const all = [primary, waited, other];
    await Promise.all(all.map((node) => cluster.run(["kill", node])));
    await lasts();
    for (const node of all) await cluster.run(["start", node]);
  },
  "primary cut off, then failover on purpose": async ({ cluster, primary, waited, random }, lasts) => {
    await cluster.run(["cut", primary]);
    await lasts();
    await cluster.run(["heal", primary]);
    // At random: there may be no primary yet, or it is already that one.
    await cluster.run(["switchover", pick(random, [primary, waited])]).catch(() => {});
  },
};
