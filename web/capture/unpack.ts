// Unpacks the columns of numbers that src/sawtooth/capture/packed.py packs.

export interface Packed {
  length: number;
  planes: number;
  data: string;
}

/** With `seconds`, converts ns to seconds; -1 means unknown. */
export async function unpacked({ length, planes, data }: Packed, seconds: boolean): Promise<Float64Array> {
  const packed = await fetch(`data:application/octet-stream;base64,${data}`);
  const stream = packed.body!.pipeThrough(new DecompressionStream("deflate"));
  const plane = new Uint8Array(await new Response(stream).arrayBuffer());
  const numbers = new Float64Array(length);
  let sum = 0;
  for (let row = 0; row < length; row += 1) {
    let coded = 0;
    for (let which = planes - 1; which >= 0; which -= 1) coded = coded * 256 + plane[which * length + row]!;
    sum += coded % 2 ? -(coded + 1) / 2 : coded / 2;
    numbers[row] = sum;
  }
  return seconds ? numbers.map((ns) => (ns === -1 ? NaN : ns / 1e9)) : numbers;
}
