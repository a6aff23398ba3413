/**
 * A connection that sends bytes exactly as they are given, and reads HTTP answers. Clients of the platform mend or
 * refuse what an attacker would send; this one does neither.
 */
import { connect, type Socket } from "node:net";

export interface Reply {
  /** 0 where the connection was closed without an answer. */
  status: number;
  headers: string;
  body: string;
}

const PATIENCE_MS = 120_000;
/** How the connection ended. */
const ignore = (): void => {};
const NONE: Reply = { status: 0, headers: "", body: "" };

export class Wire {
  private readonly host: string;
  private readonly port: number;
  private readonly patience_ms: number;
  private socket: Socket | undefined;

  constructor(url: string, patience_ms = PATIENCE_MS) {
    this.patience_ms = patience_ms;
    const { hostname, port } = new URL(url);
    this.host = hostname;
    this.port = Number(port);
  }

  /** Sends one request; returns the answer, or NONE if the server hung up on it. */
  async send(bytes: Buffer | string): Promise<Reply> {
    const reused = this.socket !== undefined && !this.socket.destroyed;
    const reply = await this.exchange(bytes);
    // A kept connection may have been closed from the other side just before: that says nothing of this request.
    return reply.status === 0 && reused ? this.exchange(bytes) : reply;
  }

  private exchange(bytes: Buffer | string): Promise<Reply> {
    const fresh = this.socket === undefined || this.socket.destroyed;
    const socket = fresh ? connect(this.port, this.host) : this.socket!;
    if (fresh) socket.setNoDelay(true).on("error", ignore);
    this.socket = socket;
    return new Promise((resolve, reject) => {
      const answer = new Answer();
      const end = (reply: Reply) => {
        clearTimeout(patience);
        socket.off("data", take).off("close", gone);
        if (answer.closes) this.close();
        resolve(reply);
      };
      const patience = setTimeout(() => {
        this.close();
        const sent = JSON.stringify(String(bytes).slice(0, 300));
        reject(new Error(`no answer within ${this.patience_ms} ms to ${sent}`));
      }, this.patience_ms);
      const take = (chunk: Buffer) => {
        if (answer.take(chunk)) end(answer.reply());
      };
      const gone = () => end(answer.isOpenEnded ? answer.reply() : NONE);
      socket.on("data", take).once("close", gone);
      socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    });
  }

  close(): void {
    this.socket?.destroy();
    this.socket = undefined;
  }
}

/** One answer as it arrives. */
class Answer {
  private bytes: Buffer = Buffer.alloc(0);
  private head = "";
  private bodyAt = -1;
  private status = 0;

  take(chunk: Buffer): boolean {
    this.bytes = this.bytes.length === 0 ? chunk : Buffer.concat([this.bytes, chunk]);
    if (this.bodyAt < 0) this.readHead();
    return this.bodyAt >= 0 && this.isWhole();
  }

  get closes(): boolean {
    return /\r\nconnection: close/i.test(this.head) || this.isOpenEnded || this.status === 0;
  }

  /** Its end is the end of the connection. */
  get isOpenEnded(): boolean {
    return this.bodyAt >= 0 && !/\r\n(?:content-length|transfer-encoding):/i.test(this.head);
  }

  reply(): Reply {
    const raw = this.bytes.subarray(this.bodyAt).toString("utf8");
    const body = this.isChunked ? raw.replace(/(?:^|\r\n)[0-9a-f]+\r\n/gi, "") : raw;
    return { status: this.status, headers: this.head, body };
  }

  private readHead(): void {
    const end = this.bytes.indexOf("\r\n\r\n");
    if (end < 0) return;
    // "100 Continue" isn't an answer yet.
    if (this.bytes.toString("latin1", 0, 12) === "HTTP/1.1 100") {
      this.bytes = this.bytes.subarray(end + 4);
      this.readHead();
      return;
    }
    this.head = this.bytes.toString("latin1", 0, end);
    this.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(this.head)?.[1] ?? 0);
    this.bodyAt = end + 4;
  }

  private get isChunked(): boolean {
    return /\r\ntransfer-encoding: chunked/i.test(this.head);
  }

  private isWhole(): boolean {
    if (this.status === 204 || this.status === 304) return true;
    if (this.isChunked)
      return (
        this.bytes.subarray(-7).includes("\r\n0\r\n\r\n") || this.bytes.subarray(this.bodyAt).equals(LAST)
      );
    const length = /\r\ncontent-length: (\d+)/i.exec(this.head)?.[1];
    return length !== undefined && this.bytes.length - this.bodyAt >= Number(length);
  }
}

const LAST = Buffer.from("0\r\n\r\n");
