/** Exports as lines of JSON: checking that one is whole, and splitting it into parts to import. */

import { BrokenExportError } from "./errors.js";

/** Size of a part; a longer line is a part of its own. The service accepts 2 MiB by default. */
const PART_BYTES = 1024 * 1024;

interface Line {
  type?: unknown;
  counts?: Record<string, number>;
}

/** The lines of a stream, line breaks included. */
export async function* splitLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const [first = "", ...others] = decoder.decode(value, { stream: !done }).split("\n");
      rest.push(first);
      for (const line of others) {
        yield `${rest.join("")}\n`;
        rest = [line];
      }
      if (done) break;
    }
    const last = rest.join("");
    if (last) yield last;
  } finally {
    await reader.cancel();
  }
}

/**
 * The lines of an export, unchanged.
 *
 * @throws BrokenExportError at the first wrong line, or at the end if the last line is missing
 */
export async function* checkedLines(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<string> {
  let manifest = false;
  let rows = 0;
  let expected: number | undefined;
  for await (const line of lines) {
    if (expected !== undefined || !line.endsWith("\n")) {
      throw new BrokenExportError("The export was cut off in a line, or goes on after its end.");
    }
    if (!manifest) {
      manifest = parsed(line).type === "manifest";
      if (!manifest) throw new BrokenExportError("This is no export: it begins with no manifest.");
    } else if (isEnd(line)) {
      expected = Object.values(parsed(line).counts ?? {}).reduce((sum, one) => sum + one, 0);
      if (expected !== rows) {
        throw new BrokenExportError(`The export has ${rows} rows, and should have ${expected}.`);
      }
    } else {
      rows += 1;
    }
    yield line;
  }
  if (expected === undefined) {
    throw new BrokenExportError("The export is not whole: its last line is missing.");
  }
}

/** An export in parts that the service accepts, in order; each begins with the manifest. */
export async function* parts(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<{ body: string; rows: number }> {
  let manifest = "";
  let pending: string[] = [];
  let size = 0;
  for await (const line of checkedLines(lines)) {
    if (!manifest) {
      manifest = line;
      continue;
    }
    if (isEnd(line)) break;
    const bytes = new TextEncoder().encode(line).byteLength;
    if (pending.length && size + bytes > PART_BYTES) {
      yield { body: manifest + pending.join(""), rows: pending.length };
      pending = [];
      size = 0;
    }
    pending.push(line);
    size += bytes;
  }
  if (pending.length) yield { body: manifest + pending.join(""), rows: pending.length };
}

function isEnd(line: string): boolean {
  return line.trimEnd().endsWith(',"type":"end"}');
}

function parsed(line: string): Line {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below.
  }
  throw new BrokenExportError("This is no export of KeMem: a line of it is no JSON object.");
}
