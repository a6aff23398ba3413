/** The thread of a sqlite store. */
import { serveJobs } from "../journal/checkpoint/worker-handle.ts";
import { sqliteJobs } from "./jobs.ts";

serveJobs(sqliteJobs);
