//! The kernel settings in a script's shell commands, and which of them the simulated sender supports.

use sawtooth_tcp::cc::Algorithm;

/// Kernel settings (`net.ipv4.…`) that match the sender's behaviour (defaults of Linux 6.12 or of the suite's
/// `defaults.sh`), or that do not affect an open connection that sends.
const AS_SET: [(&str, &[&str]); 14] = [
    ("tcp_dsack", &["1"]),
    ("tcp_early_retrans", &["3", "4"]),
    ("tcp_ecn", &["0", "2"]),
    ("tcp_fack", &["0"]),
    ("tcp_frto", &["1", "2"]),
    ("tcp_limit_output_bytes", &["4194304"]),
    ("tcp_min_tso_segs", &["2"]),
    ("tcp_pacing_ca_ratio", &["120"]),
    ("tcp_pacing_ss_ratio", &["200"]),
    ("tcp_recovery", &["1"]),
    ("tcp_reordering", &["3"]),
    ("tcp_slow_start_after_idle", &["0"]),
    ("tcp_syncookies", &["0", "1"]),
    ("tcp_tso_win_divisor", &["3"]),
];

/// Settings that enable features the sender lacks. If such a script differs, this proves nothing.
const LACKING: [&str; 1] = ["tcp_slow_start_after_idle=1"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub algorithm: Algorithm,
    pub sack: bool,
    pub timestamps: bool,
    /// Ticks per second. Scripts do not contain it, so the caller chooses it.
    pub hz: u32,
    /// Whether the queue discipline `fq` paces packets.
    pub paced: bool,
    /// Settings that the sender does not support, as `name=value`.
    pub not_followed: Vec<String>,
}

impl Settings {
    /// The settings of the suite's `defaults.sh`, on a kernel with `hz` ticks per second.
    pub fn new(hz: u32) -> Self {
        let not_followed = Vec::new();
        Settings { algorithm: Algorithm::Cubic, sack: true, timestamps: true, hz, paced: false, not_followed }
    }

    /// A feature that the script enables and the sender lacks.
    pub fn lacking(&self) -> Option<&str> {
        self.not_followed.iter().map(String::as_str).find(|setting| LACKING.contains(setting))
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
                "defaults.sh" => *self = Settings::new(self.hz),
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
            _ => {
                self.not_followed.retain(|setting| !setting.starts_with(&format!("{name}=")));
                if !AS_SET.iter().any(|(known, values)| *known == name && values.contains(&value)) {
                    self.not_followed.push(format!("{name}={value}"));
                }
            }
        }
        Ok(())
    }

    /// The sender always uses both detection methods of HyStart, as is the default.
    fn set_hystart(&mut self, value: &str) {
        if value != "3" {
            self.not_followed.push(format!("hystart_detect={value}"));
        }
    }
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
    fn a_setting_that_the_sender_lacks_is_reported_by_name() {
        let mut settings = Settings::new(250);
        let text = "../common/defaults.sh\nsysctl -q net.ipv4.tcp_tso_win_divisor=100 net.ipv4.tcp_recovery=1\n\
                    ./set_sysctls.py /proc/sys/net/ipv4/tcp_wmem=\"4096 50000 9\" \\\n /proc/sys/net/ipv4/tcp_sack=0";
        settings.command(text).expect("known commands");
        assert_eq!(settings.not_followed, ["tcp_tso_win_divisor=100", "tcp_wmem=4096 50000 9"]);
        assert!(!settings.sack);
        settings.command("sysctl net.ipv4.tcp_tso_win_divisor=3").expect("known command");
        assert_eq!(settings.not_followed, ["tcp_wmem=4096 50000 9"]);
        settings.command("common/defaults.sh").expect("known command");
        assert_eq!(settings, Settings::new(250));
    }

    #[test]
    fn the_congestion_control_is_one_that_is_simulated() {
        let mut settings = Settings::new(250);
        settings.command("sysctl -q net.ipv4.tcp_congestion_control=reno").expect("known");
        assert_eq!(settings.algorithm, Algorithm::Reno);
        assert!(settings.command("sysctl -q net.ipv4.tcp_congestion_control=vegas").is_err());
    }

    #[test]
    fn a_broken_device_and_an_unknown_command_are_refused() {
        assert!(Settings::new(250).command("tc qdisc replace dev tun0 root pfifo limit 0").is_err());
        assert!(Settings::new(250).command("ip route change initcwnd 4").is_err());
        assert!(Settings::new(250).command("tc qdisc add dev tun0 root pfifo # plain").is_ok());
    }
}
