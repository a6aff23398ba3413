/** The thread of a files store. */
import { serveJobs } from "../logged/side-thread.ts";
import { filesJobs } from "./jobs.ts";

serveJobs(filesJobs);
