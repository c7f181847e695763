/** An HTTP server of this machine that answers as a test says, and remembers what was asked. */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

import { Memory, type MemoryOptions } from "../src/index.js";

export interface Asked {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}
export type Reply = (response: ServerResponse, asked: Asked) => void;

/** A client of a server that gives `replies` in turn, the last one for ever. */
export async function clientOf(
  t: TestContext,
  replies: Reply[],
  options: MemoryOptions = {},
): Promise<{ memory: Memory; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
      asked.push(one);
      replies[Math.min(asked.length, replies.length) - 1]?.(response, one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return { memory: new Memory({ url, apiKey: "kem_x", ...options }), asked };
}

export function answers(
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): Reply {
  return (response) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

export function refuses(
  status: number,
  code: string,
  headers: Record<string, string> = {},
): Reply {
  return answers({ code, title: "Title", detail: "Detail.", status, request_id: "req_1" }, status, headers);
}

/** The request was read, and the connection ends without an answer. */
export const hangsUp: Reply = (response) => {
  response.destroy();
};
/** The request was read, and nothing is ever answered. */
export const isSilent: Reply = () => {};
