/** The thread of a workspace: it alone walks, reads and hashes, so that the process keeps answering other calls. */
import { serveThread } from "../../child-process/thread-pool.ts";
import { ContentStore } from "./content-store.ts";
import { type RecorderSetting, WorkspaceRecorder } from "./recorder.ts";
import type { RecorderJob } from "./recorder-jobs.ts";
import { sweepRecords } from "./sweep.ts";

serveThread((setting: RecorderSetting) => {
  let made: WorkspaceRecorder | undefined;
  const recorder = () => {
    made ??= new WorkspaceRecorder(setting);
    return made;
  };
  return {
    work(job: RecorderJob): unknown {
      switch (job.do) {
        case "warm":
          recorder().warm();
          return recorder().save();
        case "begin":
          return recorder().begin(job.window);
        case "end":
          return recorder().end(job);
        case "drop":
          return recorder().drop(job.window);
        case "save":
          return made?.save();
        case "sweep":
          return sweepRecords(new ContentStore(setting.folder, true), job.deleted);
      }
    },
    end: () => made?.save(),
  };
});
