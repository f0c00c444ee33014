//! The kernel settings in a script's shell commands, and which of them the simulated sender supports.

use sawtooth_tcp::cc::{Algorithm, MIN_TSO_SEGS};
use sawtooth_tcp::options::{Device, HostOptions};

/// Kernel settings (`net.ipv4.…`) that match the sender's behaviour (defaults of Linux 6.12 or of the suite's
/// `defaults.sh`), or that do not affect an open connection that sends.
const AS_SET: [(&str, &[&str]); 13] = [
    ("tcp_dsack", &["1"]),
    ("tcp_early_retrans", &["3", "4"]),
    ("tcp_fack", &["0"]),
    ("tcp_frto", &["1", "2"]),
    ("tcp_limit_output_bytes", &["4194304"]),
    ("tcp_pacing_ca_ratio", &["120"]),
    ("tcp_pacing_ss_ratio", &["200"]),
    ("tcp_recovery", &["1"]),
    ("tcp_reordering", &["3"]),
    ("tcp_fastopen", &["0x3"]),
    ("tcp_notsent_lowat", &["4294967295"]),
    ("tcp_syncookies", &["0", "1"]),
    ("tcp_tso_win_divisor", &["3"]),
];

/// Sizes of the buffers that the suite's `defaults.sh` sets, in bytes: the first ones, and the largest receive buffer.
const RECEIVE_BUFFER: u64 = 540_000;
const LARGEST_RECEIVE_BUFFER: u64 = 15 << 20;
const SEND_BUFFER: u64 = 256 << 10;
/// No buffer is larger, so that sums cannot overflow.
const LARGEST_BUFFER: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub algorithm: Algorithm,
    pub sack: bool,
    pub timestamps: bool,
    /// Ticks per second. Scripts do not contain it, so the caller chooses it.
    pub hz: u32,
    /// Whether the queue discipline `fq` paces packets.
    pub paced: bool,
    /// `tcp_ecn`: 1 asks for it and agrees to it, 2 agrees.
    pub ecn: u8,
    pub slow_start_after_idle: bool,
    pub min_tso_segs: u32,
    /// The device takes super-packets.
    pub offload: bool,
    /// The first and the largest size of the receive buffer, and whether `SO_RCVBUF` set both.
    receive_buffer: [u64; 2],
    fixed_buffer: bool,
    /// The size of the send buffer, and whether `SO_SNDBUF` fixes it.
    send_buffer: (u64, bool),
    /// `TCP_NODELAY`, set before the connection is open.
    pub no_delay: bool,
    /// Size of the segments of which a longer inbound packet consists (`--mss`).
    pub peer_mss: Option<u32>,
    /// Settings that the sender does not support, as `name=value`.
    pub not_followed: Vec<String>,
}

impl Settings {
    /// The settings of the suite's `defaults.sh`, on a kernel with `hz` ticks per second.
    pub fn new(hz: u32) -> Self {
        Settings {
            algorithm: Algorithm::Cubic,
            sack: true,
            timestamps: true,
            hz,
            paced: false,
            ecn: 0,
            slow_start_after_idle: false,
            min_tso_segs: MIN_TSO_SEGS,
            offload: true,
            receive_buffer: [RECEIVE_BUFFER, LARGEST_RECEIVE_BUFFER],
            fixed_buffer: false,
            send_buffer: (SEND_BUFFER, false),
            no_delay: false,
            peer_mss: None,
            not_followed: Vec::new(),
        }
    }

    /// Options of this host with segments of `mss` bytes.
    pub fn host_options(&self, mss: u64) -> HostOptions {
        let [receive_buffer_start, receive_buffer] = self.receive_buffer;
        HostOptions {
            hz: self.hz,
            mss: mss as u32,
            receive_buffer_start,
            receive_buffer,
            fixed_buffer: self.fixed_buffer,
            device: Device::Tun,
            ..HostOptions::default()
        }
    }

    pub fn send_buffer(&self) -> (u64, bool) {
        self.send_buffer
    }

    /// `SO_SNDBUF` and `SO_RCVBUF`, of which Linux takes the double.
    pub fn fix_send_buffer(&mut self, bytes: u64) -> u64 {
        let bytes = 2 * bytes.min(LARGEST_BUFFER);
        self.send_buffer = (bytes, true);
        bytes
    }
    pub fn fix_receive_buffer(&mut self, bytes: u64) -> u64 {
        let bytes = 2 * bytes.min(LARGEST_BUFFER);
        (self.receive_buffer, self.fixed_buffer) = ([bytes; 2], true);
        bytes
    }

    /// Applies the settings in a script's shell commands.
    ///
    /// # Errors
    ///
    /// Commands that cannot be simulated, such as a broken network device.
    pub fn command(&mut self, text: &str) -> Result<(), String> {
        for line in text.replace("\\\n", " ").lines() {
            let words = words(line.split('#').next().unwrap_or_default());
            let Some(program) = words.first() else { continue };
            let program = program.rsplit('/').next().unwrap_or_default();
            match program {
                "defaults.sh" => *self = Settings { peer_mss: self.peer_mss, ..Settings::new(self.hz) },
                "sysctl" | "set_sysctls.py" => {
                    for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
                        let name = name.rsplit(['/', '.']).next().unwrap_or_default();
                        self.set(name, value)?;
                    }
                }
                "tc" if line.contains("limit 0") => {
                    return Err("the sender's own queue drops its packets (tc … limit 0)".to_owned());
                }
                "tc" => self.paced = words.iter().any(|word| word == "fq"),
                "echo" if words.len() == 4 && words[3].ends_with("/hystart_detect") => self.set_hystart(&words[1]),
                "ethtool" => self.set_offload(&words),
                "nstat" => {}
                _ if program.starts_with("sysctl_restore") => {}
                _ => return Err(format!("command `{}`", words.join(" "))),
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "tcp_congestion_control" => {
                self.algorithm = Algorithm::from_name(value).ok_or_else(|| format!("congestion control {value}"))?;
            }
            "tcp_sack" => self.sack = value != "0",
            "tcp_timestamps" => self.timestamps = value != "0",
            "tcp_ecn" => {
                self.ecn = value.parse().unwrap_or(0);
                if self.ecn > 2 {
                    return Err(format!("tcp_ecn={value} (AccECN)"));
                }
            }
            "tcp_slow_start_after_idle" => self.slow_start_after_idle = value != "0",
            "tcp_min_tso_segs" => self.min_tso_segs = value.parse().unwrap_or(MIN_TSO_SEGS),
            "tcp_rmem" | "tcp_wmem" => {
                let sizes: Option<Vec<u64>> = sizes(value);
                let Some(&[_, first, largest]) = sizes.as_deref() else {
                    return Err(format!("{name}={value}"));
                };
                if name == "tcp_rmem" {
                    self.receive_buffer = [first, largest];
                } else {
                    self.send_buffer = (first, false);
                }
            }
            _ => {
                self.not_followed.retain(|setting| !setting.starts_with(&format!("{name}=")));
                if !AS_SET.iter().any(|(known, values)| *known == name && values.contains(&value)) {
                    self.not_followed.push(format!("{name}={value}"));
                }
            }
        }
        Ok(())
    }

    fn set_offload(&mut self, words: &[String]) {
        for pair in words.windows(2).filter(|pair| ["tso", "gso"].contains(&pair[0].as_str())) {
            self.offload = pair[1] == "on";
        }
    }

    /// The sender always uses both detection methods of HyStart, as is the default.
    fn set_hystart(&mut self, value: &str) {
        if value != "3" {
            self.not_followed.push(format!("hystart_detect={value}"));
        }
    }
}

/// Sizes in bytes; each may be a product in the shell's `$((…))`.
fn sizes(text: &str) -> Option<Vec<u64>> {
    let factor = |text: &str| text.trim().parse::<u64>().ok();
    text.split_whitespace()
        .map(|size| {
            let product = size.trim_start_matches("$((").trim_end_matches("))");
            product
                .split('*')
                .map(factor)
                .try_fold(1_u64, |product, factor| product.checked_mul(factor?))
                .map(|bytes| bytes.min(LARGEST_BUFFER))
        })
        .collect()
}

/// The words of a shell command; text in double quotes is one word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is always one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_setting_is_named() {
        let mut settings = Settings::new(250);
        let text = "../common/defaults.sh\nsysctl -q net.ipv4.tcp_tso_win_divisor=100 net.ipv4.tcp_recovery=1\n\
                    ./set_sysctls.py /proc/sys/net/ipv4/tcp_mtu_probing=2 \\\n /proc/sys/net/ipv4/tcp_sack=0";
        settings.command(text).expect("known commands");
        assert_eq!(settings.not_followed, ["tcp_tso_win_divisor=100", "tcp_mtu_probing=2"]);
        assert!(!settings.sack);
        settings.command("sysctl net.ipv4.tcp_tso_win_divisor=3").expect("known command");
        assert_eq!(settings.not_followed, ["tcp_mtu_probing=2"]);
        settings.command("common/defaults.sh").expect("known command");
        assert_eq!(settings, Settings::new(250));
    }

    #[test]
    fn congestion_control_setting_is_parsed() {
        let mut settings = Settings::new(250);
        settings.command("sysctl -q net.ipv4.tcp_congestion_control=reno").expect("known");
        assert_eq!(settings.algorithm, Algorithm::Reno);
        assert!(settings.command("sysctl -q net.ipv4.tcp_congestion_control=vegas").is_err());
    }

    #[test]
    fn dropping_qdisc_and_unknown_command_are_refused() {
        assert!(Settings::new(250).command("tc qdisc replace dev tun0 root pfifo limit 0").is_err());
        assert!(Settings::new(250).command("ip route change initcwnd 4").is_err());
        assert!(Settings::new(250).command("tc qdisc add dev tun0 root pfifo # plain").is_ok());
    }
}
