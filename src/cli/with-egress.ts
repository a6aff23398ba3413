/** What goes out to other servers, for the time of one piece of work. */
import { isRemote } from "../config/row.ts";
import type { Settings } from "../config/settings.ts";
import type { Egress } from "../egress/egress.ts";

/** The code that goes out is loaded for an address alone: manifests are files, most of the time. */
export async function withEgress<T>(
  { egress: settings }: Settings,
  path: string | null,
  work: (egress?: Egress) => Promise<T>,
): Promise<T> {
  if (path === null || !isRemote(path)) return work();
  const { createEgress } = await import("../egress/egress.ts");
  const egress = createEgress(settings, {});
  try {
    return await work(egress);
  } finally {
    await egress.close();
  }
}
