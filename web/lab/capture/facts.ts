// Facts of a capture that the page shows; docs/reference/capture.md defines them.

export interface Facts {
  packets: number;
  not_tcp: number;
  unreadable: number;
  truncated_packets: number;
  not_looked_into: Record<string, number>;
  problems: string[];
  connections: Connection[];
}

export interface Connection {
  index: number;
  client: string;
  server: string;
  start_s: number;
  end_s: number;
  handshake: { timestamps: boolean | null };
  directions: Direction[];
}

/** An end that sends no data has only its packets. */
export type Direction = { packets: number } & ({ data_packets?: undefined; payload_bytes?: undefined } | Data);

export interface Data {
  data_packets: number;
  payload_bytes: number;
  acknowledged_bytes: number;
  goodput_bps: number | null;
  rtt: { whole: { median_s: number } | null };
  limits: Record<string, number>;
  loss: { rate: number | null };
  /** Pairs of a question and its answer. */
  verdict: [string, string][];
}

/** The direction with more data, as in `sawtooth capture`; undefined if neither has any. */
export function busier({ directions }: Connection): 0 | 1 | undefined {
  const [client, server] = directions.map((one) => one.payload_bytes ?? 0) as [number, number];
  const direction = server > client ? 1 : 0;
  return directions[direction]!.data_packets === undefined ? undefined : direction;
}

/** Its facts. */
export function data(connection: Connection): Data | undefined {
  const direction = busier(connection);
  return direction === undefined ? undefined : (connection.directions[direction] as Direction & Data);
}

/** Sender → receiver, for the direction with more data. */
export function ends(connection: Connection): string {
  const both = [connection.client, connection.server];
  return (busier(connection) === 1 ? both.reverse() : both).join(" → ");
}
