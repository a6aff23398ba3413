/** Opens the egress guard for one task. */
import { isRemote } from "../config/setting-row.ts";
import type { LoadedSettings } from "../config/settings.ts";
import type { EgressClient } from "../egress/egress.ts";

/** Loads the egress code only for a URL. Most manifests are files. */
export async function withEgress<T>(
  { egress: settings }: LoadedSettings,
  path: string | null,
  work: (egress?: EgressClient) => Promise<T>,
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
