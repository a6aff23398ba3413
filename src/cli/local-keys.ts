/** Lets a command on local data read the key file that its settings name. A server has its own. */
import { KeyManager } from "../auth/key-manager.ts";
import { keyFileOf } from "../config/settings.ts";
import type { OperationClient } from "./operation-client.ts";

/** The setting that such a command takes as an option. */
export const KEY_SETTING = ["keys"];

export function openLocalKeys({ local }: OperationClient): void {
  if (local === null || local.keys !== null) return;
  const path = keyFileOf(local.settings);
  if (path !== null) local.keys = new KeyManager(path, { env: local.core.env });
}
