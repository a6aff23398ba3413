/** Thread that reads large calls and draws their cards. It has no store; the host sends it the values as JSON. */
import { serveThread } from "../../child-process/thread-pool.ts";
import { doValuesTask } from "./tasks.ts";

serveThread(() => ({ work: doValuesTask }));
