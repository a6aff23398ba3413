/** Copies an SQLite database while others have it open, as `.backup` and `.restore` of its shell do. */
import { backup, DatabaseSync } from "@photostructure/sqlite";

export async function copyDatabase(from: string, to: string): Promise<void> {
  const source = new DatabaseSync(from);
  try {
    await backup(source, to);
  } finally {
    source.close();
  }
}
