// Fetches and compiles the parts of the core once, for the page and all its workers.

/** The simulator. Raises Error if it cannot be loaded. */
export const module = load("simulator.wasm.gzip");
// Callers that wait for the core.
module.catch(() => {});

let reader: Promise<WebAssembly.Module> | undefined;

/** The reader of captures, loaded with the first one. Raises Error if it cannot be loaded; the next call tries again. */
export function captures(): Promise<WebAssembly.Module> {
  reader ??= load("captures.wasm.gzip").catch((error: unknown) => {
    reader = undefined;
    throw error;
  });
  return reader;
}

/** Compiles while downloading. The file is compressed already, because many servers do not compress it. */
async function load(name: string): Promise<WebAssembly.Module> {
  const packed = await fetch(new URL(name, document.baseURI));
  if (!packed.ok) throw new Error(`${name}: ${packed.status}`);
  const bytes = packed.body!.pipeThrough(new DecompressionStream("gzip"));
  try {
    return await WebAssembly.compileStreaming(new Response(bytes, { headers: { "Content-Type": "application/wasm" } }));
  } catch (error) {
    throw new Error(`${name} is not WebAssembly packed with gzip: ${error instanceof Error ? error.message : String(error)}`);
  }
}
