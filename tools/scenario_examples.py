"""Examples for docs/reference/scenario.md: one of each table, and a value of each field. A test reads all of them."""

from __future__ import annotations

CUSTOM = """
topology = "custom"

[hosts.a]
[hosts.b]

[[flows]]
from = "a"
to = "b"

[[links]]
from = "a"
to = "b"
rate = "100 Mbit/s"
delay = "10 ms"
"""

EXAMPLES = {
    "top level": """
name = "office"
duration = "30 s"
warmup = "5 s"
seed = 1""",
    "[path]": """
[path]
rate = "50 Mbit/s"
rtt = "20 ms"
queue = "1 bdp"
loss = "0.1%\"""",
    "[chain]": """
topology = "chain"

[chain]
rate = "1 Gbit/s"
loss = "1%\"""",
    "[dumbbell]": """
topology = "dumbbell"

[dumbbell]
rtt = ["10 ms", "100 ms"]

[[flows]]
from = "s*"
to = "r*"
count = 2""",
    "[home]": """
topology = "home"

[home]
down = "50 Mbit/s"
up = "10 Mbit/s"
queue = "250 ms\"""",
    "[parking-lot]": """
topology = "parking-lot"

[parking-lot]
hops = 2

[[flows]]

[[flows]]
from = "c2"
to = "d2\"""",
    "[host] and [hosts.NAME]": """
[host]
receive_buffer = "6 MiB"

[hosts.sender]
ecn = 1""",
    "[[flows]]": """
[[flows]]
name = "download"
cc = "bbr"
count = 4
start = "2 s\"""",
    "[flows.replace]": """
[[flows]]
count = 100
replace = { lifetime = ["1 s", "5 s"] }""",
    "source of kind rate": """
[[flows]]
source = { kind = "rate", rate = "5 Mbit/s" }""",
    "source of kind on-off": """
[[flows]]
source = { kind = "on-off", rate = "5 Mbit/s", on = "2 s", off = "3 s" }""",
    "source of kind arrivals": """
[[flows]]
source = { kind = "arrivals", load = "30%", sizes = "100 kB" }""",
    "source of kind udp": """
[[flows]]
source = { kind = "udp", rate = "5 Mbit/s", size = "1200 bytes" }""",
    "source of kind requests": """
[[flows]]
source = { kind = "requests", sizes = "100 kB", think = "1 s" }""",
    "source of kind pages": """
[[flows]]
source = { kind = "pages", objects = 30, sizes = "30 kB", think = "5 s" }""",
    "source of kind video": """
[[flows]]
source = { kind = "video", rates = ["1 Mbit/s", "3 Mbit/s", "6 Mbit/s"] }""",
    "sizes of kind lognormal": """
[[flows]]
source = { kind = "arrivals", load = "30%", sizes = { kind = "lognormal", mean = "100 kB", sigma = 1.5 } }""",
    "sizes of kind pareto": """
[[flows]]
[flows.source]
kind = "arrivals"
load = "30%"
sizes = { kind = "pareto", least = "10 kB", most = "1 GB", shape = 1.2 }""",
    "sizes of kind cdf": """
[[flows]]
source = { kind = "arrivals", load = "30%", sizes = { kind = "cdf", file = "transfers.cdf" } }""",
    "reader": """
[[flows]]
reader = { rate = "5 Mbit/s", read = "64 kB" }""",
    "think of kind exponential": """
[[flows]]
source = { kind = "requests", sizes = "100 kB", think = { kind = "exponential", mean = "1 s" } }""",
    "[[probes]]": """
[[probes]]
interval = "100 ms"
count = 600""",
    "[[programs]]": """
[[programs]]
host = "server"
command = "python3 -m http.server 8000"
ready = "port 8000"

[[programs]]
host = "client"
command = ["curl", "-sfo", "/dev/null", "-w", "%{json}", "http://server:8000/file"]
measure = { load_s = "stdout:/time_total" }""",
    "[cards.NAME]": CUSTOM.replace('rate = "100 Mbit/s"\n', "")
    + """
[cards.a]
rate = "1 Gbit/s"
queue = "1000 packets\"""",
    "[[links]]": CUSTOM,
    "[links.forward] and [links.backward]": CUSTOM
    + """
[links.forward]
loss = "1%\"""",
    "changes": """
[path]
changes = [{ at = "10 s", rate = "5 Mbit/s" }, { at = "20 s", rate = ["5 Mbit/s", "50 Mbit/s"] }]""",
    "jitter": """
[path]
jitter = { deviation = "2 ms", distribution = "normal" }""",
    "reorder": """
[path]
reorder = "1%\"""",
    "duplicate and corrupt": """
[path]
duplicate = "0.1%"
corrupt = { share = "0.01%", correlation = "25%" }""",
    "policer": """
[path]
policer = { rate = "10 Mbit/s", burst = "64 KiB" }""",
    "[[routes]]": """
topology = "custom"
hosts = { a = {}, b = {}, c = {} }
links = [{ from = "a", to = "b" }, { from = "b", to = "c" }, { from = "a", to = "c" }]
routes = [{ from = "a", to = "c", via = ["b"] }]
flows = [{ from = "a", to = "c" }]""",
    "loss": """
[path]
loss = { every = 1000 }""",
    "loss.gilbert_elliott": """
[path]
loss = { gilbert_elliott = { p = "1%", r = "30%" } }""",
    "queue of kind pfifo": """
[path]
queue = { kind = "pfifo", limit = "1000 packets" }""",
    "queue of kind bfifo": """
[path]
queue = { kind = "bfifo", limit = "64 KiB" }""",
    "queue of kind codel": """
[path]
queue = { kind = "codel", target = "5 ms" }""",
    "queue of kind red": """
[path]
queue = { kind = "red", limit = "400 kB", adaptive = true }""",
    "queue of kind tbf": """
[path]
queue = { kind = "tbf", rate = "20 Mbit/s", burst = "16 kB", latency = "50 ms" }""",
    "queue of kind cake": """
[path]
queue = { kind = "cake", bandwidth = "45 Mbit/s" }""",
    "queue of kind dualpi2": """
[path]
queue = { kind = "dualpi2", target = "15 ms" }

[[flows]]
cc = "prague\"""",
    **{
        f"queue of kind {kind}": f'\n[path]\nqueue = {{ kind = "{kind}" }}'
        for kind in ("fq_codel", "pie", "fq_pie", "fq", "sfq")
    },
}
"""An example of each table: a scenario by itself."""

VALUES = {
    "Scenario.name": '"office"',
    "Scenario.duration": '"30 s"',
    "Scenario.warmup": '"5 s"',
    "Scenario.interval": '"1 s"',
    "Scenario.ip": "6",
    "Scenario.date": '"2026-11-26"',
    "Path.changes": '[{ at = "10 s", rate = "5 Mbit/s" }]',
    "changes": '[{ at = "10 s", rate = "5 Mbit/s" }]',
    "trace": '"lte-like.down"',
    "jitter": '"2 ms"',
    "reorder": '"1%"',
    "duplicate": '"0.1%"',
    "corrupt": '"0.01%"',
    "policer": '{ rate = "10 Mbit/s", burst = "64 KiB" }',
    "overhead": '"24 bytes"',
    "opportunity": '"15 kB"',
    "aggregation": '"2 ms"',
    "Dumbbell.pairs": "2",
    "Dumbbell.rtt": '["10 ms", "100 ms"]',
    "Dumbbell.access_rate": '"1 Gbit/s"',
    "Host.kernel": '"bbr3"',
    "Host.cc": '"bbr"',
    "Host.hz": "1000",
    "Host.mss": "1440",
    "Host.ecn": "1",
    "Host.gro": '"20 us"',
    "Host.processing": '"20 us"',
    "Program.name": '"browser"',
    "Program.host": '"client"',
    "Program.command": '"curl -s server:8000"',
    "Program.ready": '"port 8000"',
    "Program.start": '"2 s"',
    "Program.directory": '"site"',
    "Program.environment": '{ LANG = "C" }',
    "Program.stdin": '"GET /"',
    "Program.files": '["/tmp/build"]',
    "Program.collect": '["*.json"]',
    "Program.memory": '"3 GiB"',
    "Program.measure": '{ load_s = "stdout:/time_total" }',
    "Flow.name": '"download"',
    "Flow.cc": '"bbr"',
    "Flow.count": "4",
    "Flow.bytes": '"10 MB"',
    "Flow.from": '"sender"',
    "Flow.to": '"receiver"',
    "Flow.start": '"2 s"',
    "Flow.duration": '"20 s"',
    "Flow.replace": '{ lifetime = ["1 s", "5 s"] }',
    "Flow.source": '{ kind = "rate", rate = "5 Mbit/s" }',
    "Flow.reader": '{ rate = "5 Mbit/s" }',
    "lifetime": '["1 s", "5 s"]',
    "write": '"64 kB"',
    "read": '"64 kB"',
    "Arrivals.load": '"30%"',
    "Arrivals.times": '"transfers.csv"',
    "sizes": '"100 kB"',
    "think": '"1 s"',
    "Udp.size": '"1200 bytes"',
    "Udp.on": '"1 s"',
    "Udp.off": '"1 s"',
    "rates": '["1 Mbit/s", "3 Mbit/s"]',
    "Video.segment": '"4 s"',
    "Video.buffer": '"30 s"',
    "mean": '"100 kB"',
    "Exponential.mean": '"1 s"',
    "sigma": "1.5",
    "least": '"10 kB"',
    "most": '"1 GB"',
    "shape": "1.2",
    "Cdf.file": '"transfers.cdf"',
    "Probe.name": '"ping"',
    "Probe.from": '"sender"',
    "Probe.to": '"receiver"',
    "Probe.count": "600",
    "from": '"a"',
    "to": '"b"',
    "Link.name": '"access"',
    "via": '["c"]',
    "Change.at": '"10 s"',
    "Change.every": '"15 s"',
    "Jitter.table": '"my.dist"',
    "Jitter.distribution": '"pareto"',
    "correlation": '"25%"',
    "Reorder.gap": "5",
    "Policer.burst": '"64 KiB"',
    "Pfifo.limit": '"1000 packets"',
    "Bfifo.limit": '"64 KiB"',
    "Codel.limit": '"1000 packets"',
    "FqCodel.limit": '"10240 packets"',
    "Pie.limit": '"1000 packets"',
    "FqPie.limit": '"10240 packets"',
    "Fq.limit": '"10000 packets"',
    "Sfq.limit": '"127 packets"',
    "DualPi2.limit": '"10000 packets"',
    "DualPi2.step_thresh": '"1 ms"',
    "Red.limit": '"400 kB"',
    "Red.min": '"30 kB"',
    "Red.max": '"90 kB"',
    "Red.avpkt": '"1000 bytes"',
    "Red.burst": "55",
    "target": '"5 ms"',
    "quantum": '"1514 bytes"',
    "initial_quantum": '"15140 bytes"',
    "minburst": '"1514 bytes"',
    "Tbf.rate": '"20 Mbit/s"',
    "perturb": '"10 s"',
    "Cake.rtt": '"30 ms"',
    "LossPattern.every": "1000",
    "LossPattern.packets": "[500, 510]",
    "LossPattern.mean": '"0.5%"',
    "burst": '"5 packets"',
    "Tbf.burst": '"16 kB"',
    "gilbert_elliott": '{ p = "1%", r = "30%" }',
}
"""Values of fields in TOML, if the default example of their type is not useful; by table and field, or by field."""
