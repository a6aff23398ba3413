/** How a process undoes steps by the commands that its settings name. */
import type { Settings } from "../../../config/settings.ts";
import { LIMITS } from "../../../kernel/limits.ts";
import type { Today } from "../../../model/roles.ts";
import { compensatorCommand, readerCommand } from "../../../process/rollback-commands.ts";
import type { JobTools } from "../../../rollback/job.ts";
import type { Reader } from "../../../rollback/ports.ts";

/** Null where no compensator is configured. */
export function commandTools(settings: Settings, stop: AbortSignal, today?: Today): JobTools | null {
  const { compensator_cmd, timeout_ms } = settings.rollback;
  if (compensator_cmd === null) return null;
  return {
    compensator: compensatorCommand(compensator_cmd, { timeout_ms }),
    reader: commandReader(settings),
    own_reader: true,
    stop,
    today,
  };
}

/** Null where no reader is configured. */
export function commandReader({ rollback: { reader_cmd, timeout_ms } }: Settings): Reader | null {
  if (reader_cmd === null) return null;
  return readerCommand(reader_cmd, { timeout_ms: Math.min(timeout_ms, LIMITS.read_timeout_ms) });
}
