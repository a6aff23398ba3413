/** The thread of a files store. */
import { serveJobs } from "../journal/checkpoint/worker-handle.ts";
import { filesJobs } from "./jobs.ts";

serveJobs(filesJobs);
