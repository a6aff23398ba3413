/** The thread of a sqlite store. */
import { serveJobs } from "../logged/helper.ts";
import { sqliteJobs } from "./jobs.ts";

serveJobs(sqliteJobs);
