/** The thread of a sqlite store. */
import { serveJobs } from "../logged/side-thread.ts";
import { sqliteJobs } from "./jobs.ts";

serveJobs(sqliteJobs);
