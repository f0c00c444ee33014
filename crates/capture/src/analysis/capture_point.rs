//! Where on the path the capture was taken: at an end, or where between them.

use serde::Serialize;

use crate::analysis::connection::Connection;
use sawtooth_units::width::Approx;

/// Share of the round trip up to which the capture point counts as an end.
const AT_END: f64 = 0.1;

/// The two halves of a connection's round trip at their shortest, in seconds.
#[derive(Debug, Serialize)]
pub struct CapturePoint {
    /// "client", "server", "middle" or "unknown".
    pub at: &'static str,
    /// From the capture point to the client and back.
    pub to_client_s: Option<f64>,
    pub to_server_s: Option<f64>,
}

impl CapturePoint {
    pub fn of(connection: &Connection) -> Self {
        let (server_ns, client_ns) = connection.handshake_trips_ns();
        let shortest = |side: usize, handshake_ns: Option<u64>| {
            let own = connection.flows[side].as_ref().and_then(|flow| flow.trips.sender_echo.min_ns());
            let peer = connection.flows[1 - side].as_ref().map(|flow| &flow.trips);
            let acked = peer.and_then(|trips| trips.sequence.min_ns());
            let echoed = peer.and_then(|trips| trips.receiver_echo.min_ns());
            [own, acked, echoed, handshake_ns].into_iter().flatten().min().map(|ns| ns.approx() / 1e9)
        };
        let (to_client_s, to_server_s) = (shortest(0, client_ns), shortest(1, server_ns));
        let at = match to_client_s.zip(to_server_s) {
            Some((client, server)) if client + server > 0.0 => match client / (client + server) {
                share if share < AT_END => "client",
                share if share > 1.0 - AT_END => "server",
                _ => "middle",
            },
            _ => "unknown",
        };
        CapturePoint { at, to_client_s, to_server_s }
    }
}
