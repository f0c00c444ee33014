"""The testbed's plan: what a scenario becomes on Linux, determined without privileges."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.testbed import outcome, qdisc
from sawtooth.testbed.plan import Plan, address, build, sysctls
from sawtooth.testbed.ports import FIFO, LOSS, RATE, ROOT, WIRE, Qdisc
from sawtooth.testbed.seed import link_seed, mixed
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.traffic import captured_hosts, captures, check_source, orders, sending_hosts
from sawtooth.testbed.unsupported import check, check_tools

HOST_WITHOUT_NETEM = Place(netem=False, vlan=False, macvlan=True, nftables=True, virtual=False)


def plan(place: Place | None = None, **tables: Any) -> Plan:
    return build(Scenario(**tables).compile(), place or Place(), "st-1-0-1-")


def stack(of: Plan, host: str) -> list[Qdisc]:
    number = next(i for i, one in enumerate(of.namespaces) if one.name.endswith(f"-{host}"))
    return [one for one in of.ports.qdiscs if one.namespace == number]


def netem(options: bytes) -> dict[str, int]:
    """The options read back: fields of tc_netem_qopt, then attributes."""
    _, limit, loss, *_ = struct.unpack_from("=6I", options)
    found = {"limit": limit, "loss": loss}
    at = 24
    while at < len(options):
        length, kind = struct.unpack_from("=HH", options, at)
        value = options[at + 4 : at + length]
        name = {5: "model", 6: "rate", 8: "rate64", 10: "delay", 14: "seed"}[kind]
        found[name] = int.from_bytes(value[:4] if kind == 6 else value, "little")
        at += -(-length // 4) * 4
    return found


def refusal(place: Place | None = None, **tables: Any) -> SawtoothError:
    scenario = Scenario(**tables)
    with expected_error(code="unsupported") as caught:
        check(scenario.compile(), scenario.traffic, place or Place(), where="here")
    return caught.value


def test_each_host_is_a_namespace_with_one_address() -> None:
    made = plan(topology="chain")
    assert [one.name for one in made.namespaces] == [f"st-1-0-1-h{i}" for i in range(1, 6)]
    assert [one.address for one in made.namespaces] == [f"10.0.0.{i}" for i in range(1, 6)]


def test_a_queue_limit_does_not_count_the_packet_on_the_wire() -> None:
    (rate,) = stack(plan(path={"queue": "170 packets"}), "router")
    assert netem(rate.options) == {"limit": 171, "loss": 0, "rate": 100_000_000 // 8}


def test_a_delay_never_shares_a_limit_with_a_queue() -> None:
    for one in plan(topology="chain", chain={"rtt": "80 ms", "loss": "1%"}).ports.qdiscs:
        if one.kind == "netem":
            found = netem(one.options)
            assert "delay" not in found or found["limit"] == qdisc.UNLIMITED


def test_loss_comes_first_then_the_queue_then_the_delay() -> None:
    tables = {
        "topology": "custom",
        "hosts": {"a": {}, "b": {}, "c": {}},
        "links": [
            {"from": "a", "to": "b"},
            {"from": "b", "to": "c", "rate": "10 Mbit/s", "queue": "20 packets", "loss": "2%", "delay": "5 ms"},
        ],
        "flows": [{"from": "a", "to": "c"}],
    }
    wire, loss, rate = stack(plan(**tables), "b")[:3]
    assert (wire.device, wire.handle, wire.parent) == ("x2", WIRE << 16, ROOT)
    assert netem(wire.options) == {"limit": qdisc.UNLIMITED, "loss": 0, "delay": 5_000_000}
    assert (loss.device, loss.handle, loss.parent) == ("x2q", LOSS << 16, ROOT)
    assert netem(loss.options)["loss"] == round(0.02 * 2**32)
    assert (rate.device, rate.handle, rate.parent) == ("x2q", RATE << 16, LOSS << 16 | 1)
    assert netem(rate.options) == {"limit": 21, "loss": 0, "rate": 1_250_000}


def test_bursts_are_netems_gemodel() -> None:
    loss = {"gilbert_elliott": {"p": "1%", "r": "25%", "bad": "80%", "good": "0.1%"}}
    (made,) = stack(plan(path={"loss": loss, "rtt": "0 s"}), "loss")[:1]
    found = netem(made.options)
    chances = [round(share * 2**32) for share in (0.01, 0.25, 0.8, 0.001)]
    chances[2] = 2**32 - 1 - chances[2]
    # A nested attribute NETEM_LOSS_GE with the chances of going bad and good, of passing when bad, of loss when good.
    model = struct.pack("=HH4I", 20, 2, *chances)
    assert (found["loss"], found["model"]) == (0, int.from_bytes(model, "little"))
    assert "seed" in found


def test_every_nth_packet_is_a_rule_that_counts_what_is_forwarded() -> None:
    made = plan(topology="chain", chain={"loss": {"every": 500}})
    (rule,) = made.ports.rules
    assert (rule.namespace, rule.every) == (2, 500)
    assert rule.gateway in {one.gateway for one in made.routes if one.namespace == 2}
    assert not made.ports.losses
    assert not [one for one in made.ports.qdiscs if one.handle == LOSS << 16]


def test_where_tcp_sends_a_bucket_of_one_frame_keeps_its_back_pressure() -> None:
    made = stack(plan(topology="chain", chain={"rtt": "0 s"}), "h1")
    assert [(one.kind, one.device) for one in made] == [("netem", "x0"), ("tbf", "x0q"), ("pfifo", "x0q")]
    # The frame leaves at the end of its transmission, so the wire has the rate as well.
    assert netem(made[0].options)["rate"] == 10**9 // 8
    assert struct.unpack("=I", made[1].options[-4:]) == (1514 + 125,)
    assert (made[2].parent, made[2].options) == (RATE << 16 | 1, struct.pack("=I", 1000))
    assert made[2].handle == FIFO << 16


def test_a_queue_in_bytes_is_a_bfifo() -> None:
    made = stack(plan(path={"queue": "64 KiB"}), "router")
    assert [one.kind for one in made] == ["netem", "htb", "bfifo"]
    assert made[2].options == struct.pack("=I", 65536)


def test_before_a_short_queue_each_packet_has_its_time_whatever_its_size() -> None:
    wire, shaper, queue = stack(plan(path={"rate": "100 Mbit/s", "queue": "2 packets"}), "router")
    assert netem(wire.options)["rate"] == 12_500_000
    assert (shaper.kind, shaper.handle, queue.parent) == ("htb", RATE << 16, RATE << 16 | 1)
    # Unclassified traffic goes to class 1: that class's rate, its ceiling, and a burst of 1 us for each, in ticks of
    # 64 ns.
    assert struct.unpack("=5I", shaper.options[4:]) == (3, 10, 1, 0, 0)
    parameters = struct.unpack("=BBHhHIBBHhHI5I", shaper.leaf[4:])
    assert (parameters[5], parameters[11], parameters[12:14]) == (12_500_000, 12_500_000, (15, 15))


def test_links_that_leave_by_one_card_are_vlan_sub_interfaces_of_it() -> None:
    made = plan(topology="chain", chain={"loss": "1%"})
    subs = [one for one in made.ports.subs if one.name.startswith("x2")]
    assert [(one.kind, one.parent, one.name) for one in subs] == [
        ("vlan", "x2", "x2q"),
        ("vlan", "x2q", "x2qv0"),
        ("vlan", "x2q", "x2qv1"),
    ]
    card = [one for one in stack(made, "h3") if one.device == "x2q"]
    assert len(card) == 1, "one transmitter, one queue"
    (loss,) = [one for one in stack(made, "h3") if one.device == "x2qv0"]
    assert netem(loss.options)["loss"] == round(0.01 * 2**32)


def test_frames_with_more_than_one_tag_are_as_long_as_without() -> None:
    made = plan(topology="chain", chain={"queue": {"kind": "fq_codel"}})
    # A tag outside the frame does not count in its length. h1's card has one sub-interface above the wire, h2's two.
    assert {one.tags for one in stack(made, "h1")} == {0}
    assert {one.device: one.tags for one in stack(made, "h2") if one.parent == ROOT} == {"x1": 4, "x1q": 0}
    lossy = {"from": "a", "to": "c", "delay": "5 ms", "loss": "1%"}
    tables = {"topology": "custom", "hosts": {"a": {}, "b": {}, "c": {}}, "flows": [{"from": "a", "to": "c"}]}
    made = plan(cards={"a": {"rate": "1 Gbit/s"}}, links=[{"from": "a", "to": "b"}, lossy], **tables)
    tags = {one.device: one.tags for one in stack(made, "a") if one.parent == ROOT}
    assert tags == {"x0": 8, "x0q": 4, "x0qv1": 0}
    assert [one.tags for one in made.ports.veths if one.near == "x0"] == [8], "room for them beyond the MTU"
    cut = [one for one in made.ports.subs if one.name in ("x0qv0c", "x0qv1c")]
    assert len(cut) == 2, "all frames of a card have as many tags"


def test_a_root_that_counts_frames_shorter_is_corrected_by_a_size_table() -> None:
    # struct tc_sizespec in the attribute TCA_STAB_BASE: only the overhead of Ethernet.
    assert struct.unpack("=HHBBhi4I", qdisc.shorter(8)) == (28, 1, 0, 0, 0, -8, 1, 0, 0, 0)


def test_links_of_one_card_with_different_delays_part_after_it() -> None:
    tables = {
        "topology": "custom",
        "hosts": {"a": {}, "b": {}, "c": {}},
        "cards": {"b": {"rate": "1 Gbit/s"}},
        "links": [{"from": "a", "to": "b", "delay": "1 ms"}, {"from": "b", "to": "c", "delay": "7 ms"}],
        "flows": [{"from": "a", "to": "c"}],
    }
    made = plan(**tables)
    prio, *bands = [one for one in stack(made, "b") if one.device.startswith("x") and "q" not in one.device]
    assert prio.kind == "prio"
    assert [netem(one.options)["delay"] for one in bands] == [1_000_000, 7_000_000]
    assert len(made.ports.filters) == 2


def test_loss_where_tcp_sends_is_of_single_frames_unless_offload_is_asked_for() -> None:
    tables: dict[str, Any] = {
        "topology": "custom",
        "hosts": {"a": {}, "b": {}},
        "links": [{"from": "a", "to": "b", "loss": "1%", "delay": "1 ms"}],
        "flows": [{"from": "a", "to": "b"}],
    }
    made = plan(**tables)
    assert made.ports.tops[0] == "x0qc", "a sub-interface without queue on top, which cuts super-packets"
    assert not [one for one in made.ports.qdiscs if one.device == "x0qc"]
    assert plan(host={"offload": True}, **tables).ports.tops[0] == "x0q"


def test_a_forwarding_host_with_offload_queues_super_packets_whole_under_a_shaper_that_does_not_cut() -> None:
    tables: dict[str, Any] = {"path": {"rate": "100 Mbit/s", "rtt": "20 ms", "queue": "100 packets"}}
    made, single = plan(host={"offload": True}, **tables), plan(**tables)
    assert made.ports.whole == {(0, "x0")}, "the sender's device passes super-packets on; the router's cuts them"
    assert single.ports.whole == set()
    assert [one.kind for one in stack(made, "router")] == ["netem", "htb", "pfifo"]
    assert [one.kind for one in stack(single, "router")] == ["netem"]
    marking: dict[str, Any] = {"path": {"rate": "100 Mbit/s", "rtt": "20 ms", "queue": {"kind": "codel"}}}
    assert [one.kind for one in stack(plan(host={"offload": True}, **marking), "router")] == ["netem", "htb", "codel"]
    cutting: dict[str, Any] = {"path": {"rate": "100 Mbit/s", "rtt": "20 ms", "queue": {"kind": "cake"}}}
    for early in (plan(host={"offload": True}, **cutting), plan(hosts={"router": {"offload": True}}, **tables)):
        assert early.ports.whole == set()


def test_packets_of_two_sources_that_part_on_their_way_get_rules_by_source() -> None:
    tables = {
        "topology": "custom",
        "hosts": {name: {} for name in ("a", "b", "c", "d", "e")},
        "links": [
            {"from": "a", "to": "c"},
            {"from": "b", "to": "c"},
            {"from": "c", "to": "d"},
            {"from": "c", "to": "e"},
            {"from": "e", "to": "d"},
        ],
        "routes": [{"from": "b", "to": "d", "via": ["c", "e"]}],
        "flows": [{"from": "a", "to": "d"}, {"from": "b", "to": "d"}],
    }
    made = plan(**tables)
    (rule,) = made.rules
    assert (rule.namespace, rule.source, rule.destination) == (2, address(1), address(3))
    by_table = {one.table: one.device for one in made.routes if one.namespace == 2 and one.destination == address(3)}
    assert len(by_table) == 2
    assert len(set(by_table.values())) == 2


def test_host_settings_are_sysctls_and_route_metrics() -> None:
    settings = {
        "receive_buffer": "64 KiB",
        "send_buffer": "1 MiB",
        "sack": False,
        "timestamps": False,
        "delayed_ack": False,
        "initial_window": 3,
    }
    scenario = Scenario(host=settings)
    given = sysctls(scenario.compile().hosts[0])
    assert given["net/ipv4/tcp_rmem"] == "4096 65536 65536"
    assert given["net/ipv4/tcp_wmem"] == "4096 16384 1048576"
    assert (given["net/ipv4/tcp_sack"], given["net/ipv4/tcp_timestamps"]) == ("0", "0")
    assert (given["net/ipv4/tcp_ecn"], given["net/ipv4/tcp_no_metrics_save"]) == ("0", "1")
    made = plan(host=settings)
    (way,) = [one for one in made.routes if one.namespace == 0 and one.source]
    assert way.metrics == {"initcwnd": 3, "quickack": 1}


@pytest.mark.parametrize(("timestamps", "mtu"), [(True, 1500), (False, 1488)])
def test_the_mtu_follows_from_the_segment_and_its_options(timestamps: bool, mtu: int) -> None:
    assert plan(host={"timestamps": timestamps}).ports.mtu == mtu


def test_a_pair_with_smaller_segments_gets_them_by_its_routes() -> None:
    made = plan(topology="dumbbell", dumbbell={"pairs": 2}, hosts={"s2": {"mss": 500}}, flows=[{"count": 2}])
    metrics = {one.namespace: one.metrics for one in made.routes if one.source}
    assert made.ports.mtu == 1500
    assert metrics[2] == {"initcwnd": 10}
    assert (metrics[3]["mtu"], metrics[3]["advmss"]) == (552, 512)


def test_seeds_of_links_and_scenarios_are_unrelated() -> None:
    seeds = {link_seed(seed, link) for seed in range(50) for link in range(50)}
    assert len(seeds) == 2500
    assert min(seeds) > 2**32, "netem's generator has no warm-up: a small seed is a bad one"
    assert mixed(0) != mixed(1)


def test_netem_takes_rates_beyond_32_bits() -> None:
    assert netem(qdisc.netem(rate_bps=100_000_000_000))["rate64"] == 12_500_000_000
    assert netem(qdisc.netem(loss_ppb=10**9))["loss"] == 2**32 - 1


def test_without_netem_and_vlan_a_card_is_split_by_addresses_and_loss_is_a_rule() -> None:
    made = plan(HOST_WITHOUT_NETEM, topology="chain", chain={"rtt": "0 s", "loss": "1%"})
    assert {one.kind for one in made.ports.qdiscs} == {"tbf", "pfifo"}
    assert {one.kind for one in made.ports.subs} == {"macvlan"}
    (rule,) = made.ports.rules
    assert (rule.namespace, rule.loss_ppb) == (2, 10_000_000)
    assert rule.gateway in {one.gateway for one in made.routes if one.namespace == 2}


@pytest.mark.parametrize(("rate", "late_bytes"), [("2 Mbit/s", 125), ("20 Mbit/s", 1250), ("100 Mbit/s", 6250)])
def test_in_real_time_a_bucket_holds_half_a_millisecond_more_than_a_frame(rate: str, late_bytes: int) -> None:
    # A bucket of one frame lost what each late timer took: 4% of the rate at 20 Mbit/s.
    bucket = plan(HOST_WITHOUT_NETEM, path={"rate": rate, "rtt": "0 s"}).ports.qdiscs[0]
    assert bucket.kind == "tbf"
    assert struct.unpack("=I", bucket.options[-4:]) == (1514 + late_bytes,)


def test_what_the_kernel_of_the_host_cannot_do_is_refused_by_name() -> None:
    assert refusal(HOST_WITHOUT_NETEM, topology="chain").field == "delay"
    lossy = {"chain": {"rtt": "0 s", "loss": "1%"}, "topology": "chain"}
    assert refusal(Place(netem=False, vlan=True, nftables=False), **lossy).field == "loss"
    assert refusal(Place(netem=False, vlan=False), topology="chain", chain={"rtt": "0 s"}).field == "cards.h2"


def test_a_loss_that_a_kernel_cannot_do_is_refused_by_name() -> None:
    every, bursts = {"every": 100}, {"gilbert_elliott": {"p": "1%", "r": "30%"}}
    assert "nftables" in refusal(Place(nftables=False), path={"loss": every}).message
    chain: dict[str, Any] = {"topology": "chain", "chain": {"rtt": "0 s", "loss": bursts}}
    assert "bursts" in refusal(HOST_WITHOUT_NETEM, **chain).message
    ends: dict[str, Any] = {"topology": "custom", "hosts": {"a": {}, "b": {}}, "flows": [{"from": "a", "to": "b"}]}
    for way in ("forward", "backward"):
        # Data and acknowledgements that start on the link itself.
        found = refusal(**ends, links=[{"from": "a", "to": "b", way: {"loss": every}}])
        assert (found.field, "forwards" in (found.fix or "")) == ("loss", True)
    check(Scenario(**ends, links=[{"from": "a", "to": "b", "loss": bursts}]).compile(), "native", Place(), where="here")


def test_one_kernel_has_one_timer_tick() -> None:
    assert refusal(hosts={"receiver": {"hz": 1000}}).field == "hosts.receiver.hz"


def test_what_iperf3_cannot_do_is_refused_by_name() -> None:
    assert refusal(flows=[{"replace": {"lifetime": ["1 s", "2 s"]}}]).field == "flows.0.replace"
    assert refusal(flows=[{"source": {"kind": "rate", "rate": "1 Mbit/s"}}]).field == "flows.0.source"
    assert refusal(flows=[{"reader": {"rate": "1 Mbit/s"}}]).field == "flows.0.reader"
    assert refusal(flows=[{"count": 129}]).field == "flows.0.count"
    assert refusal(flows=[{"count": 2, "bytes": "1 MB"}]).field == "flows.0.bytes"
    assert refusal(flows=[{"duration": "1.5 s"}]).field == "flows.0.duration"
    native = Scenario(traffic="native", flows=[{"count": 1000, "replace": {"lifetime": ["1 s", "2 s"]}}])
    check(native.compile(), native.traffic, Place(), where="here")


def test_overheads_that_differ_on_one_card_are_refused() -> None:
    links = [{"from": "a", "to": "b"}, {"from": "b", "to": "c", "overhead": "24 bytes"}]
    given = {"topology": "custom", "hosts": {"a": {}, "b": {}, "c": {}}, "cards": {"b": {"rate": "1 Gbit/s"}}}
    assert refusal(**given, links=links, flows=[{"from": "a", "to": "c"}]).field == "links.overhead"


def test_the_orders_name_every_flow_probe_queue_and_lossy_link(tmp_path: Any) -> None:
    scenario = Scenario(
        topology="chain", chain={"loss": "1%"}, probes=[{"interval": "100 ms"}], flows=[{"cc": "bbr"}, {}]
    )
    compiled = scenario.compile()
    made = plan(**scenario.to_dict())
    devices = {one: index for index, one in enumerate(made.ports.devices())}
    text = orders(compiled, made, "iperf3", tmp_path, tmp_path, devices, capture=["h1", "h5"], virtual=True)
    words = [line.split()[0] for line in text.splitlines()]
    assert {name: words.count(name) for name in ("flow", "probe", "queue", "link", "host")} == {
        "flow": 2,
        "probe": 1,
        "queue": 5,
        "link": 1,
        "host": 1,
    }
    assert sending_hosts(compiled) == [0]
    assert f"env\tLD_PRELOAD={tmp_path}/waits.so\tiperf3\t-c\t10.0.0.5" in text
    real = orders(compiled, made, "iperf3", tmp_path, tmp_path, devices, capture=[], virtual=False)
    assert "\tiperf3\t-c\t10.0.0.5" in real
    assert "LD_PRELOAD" not in real
    assert "-C\tbbr" in text
    assert text.count("tcpdump\t") == 2


def test_a_testbed_that_did_not_come_to_its_end_is_reported_with_its_last_words(tmp_path: Path) -> None:
    outcome.check(tmp_path, 0)
    (tmp_path / "stderr").write_text("first\nno memory\n")
    with expected_error(code="testbed-failed", match="status 7: no memory"):
        outcome.check(tmp_path, 7)
    left = {"code": "program-not-ready", "message": "the program ended", "field": "programs.1.ready", "fix": "see"}
    (tmp_path / "error.json").write_text(json.dumps(left))
    with pytest.raises(SawtoothError) as caught:
        outcome.check(tmp_path, 1)
    assert {name: getattr(caught.value, name) for name in left} == left
    for damaged in ('{"code": "no-such", "message": ""}', "[]", "{"):
        (tmp_path / "error.json").write_text(damaged)
        with expected_error(code="testbed-failed", match="incomplete result"):
            outcome.check(tmp_path, 1)


def test_a_traffic_source_that_failed_says_why_and_for_too_many_open_files_names_the_field() -> None:
    check_source(0, "")
    with pytest.raises(OSError, match="no netem"):
        check_source(1, "no netem\n")
    with expected_error(field="flows.2.source.open", match=r"flows\.2\.source\.open: more than 4096 files") as caught:
        check_source(3, "flows.2.source.open: more than 4096 files are open, two a connection\n")
    assert "ulimit" in (caught.value.fix or "")


def test_a_program_that_traffic_or_a_capture_needs_is_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_tools("native", capture=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    check_tools("native", capture=False)
    for asked, name in ((("iperf3", False), "iperf3"), (("native", True), "tcpdump")):
        with expected_error(code="tool-missing", match=name):
            check_tools(asked[0], capture=asked[1])


def test_captures_that_cannot_be_kept_are_reported(tmp_path: Path) -> None:
    (tmp_path / "capture-h1.pcap").write_bytes(b"x")
    outcome.keep_captures(tmp_path, tmp_path / "kept")
    assert (tmp_path / "kept" / "capture-h1.pcap").read_bytes() == b"x"
    with expected_error(code="unwritable-output"):
        outcome.keep_captures(tmp_path, tmp_path / "capture-h1.pcap")


def test_captures_are_taken_at_both_ends_or_at_the_hosts_asked_for() -> None:
    compiled = Scenario(topology="path").compile()
    assert captured_hosts(compiled, ()) == ["sender", "receiver"]
    assert captured_hosts(compiled, ("router", "router", "delay")) == ["router", "delay"]
    with expected_error(code="unknown-name", field="capture-at") as caught:
        captured_hosts(compiled, ("routr",))
    assert "router" in str(caught.value.fix)


def captured_devices(host: str, **scenario: Any) -> list[str]:
    """The devices that tcpdump captures on a host."""
    compiled, ports = Scenario(**scenario).compile(), plan(**scenario).ports
    devices = {one: 100 + index for index, one in enumerate(ports.devices())}
    names = {f"ifindex {index}": name for (_, name), index in devices.items()}
    (program,) = captures(compiled, ports, devices, (host,), virtual=True)
    protocols, wanted = program.words[-1].split(" and ")
    assert (protocols, program.namespace) == ("(tcp or icmp)", [one.name for one in compiled.hosts].index(host))
    return [names[one] for one in wanted.strip("()").split(" or ")]


def test_a_capture_has_each_packet_of_an_end_on_the_device_that_it_leaves_by_first_or_comes_in_by_last() -> None:
    assert captured_devices("sender", topology="path") == ["y7", "x0"]
    links = [{"from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms", "forward": {"loss": "1%"}}]
    own = {"topology": "custom", "hosts": {"a": {}, "b": {}}, "links": links, "flows": [{"from": "a", "to": "b"}]}
    assert captured_devices("a", **own) == ["y1q", "x0qc"]
    assert captured_devices("b", **own) == ["y0qc", "x1q"]


def test_where_packets_are_forwarded_a_capture_has_them_as_they_come_in() -> None:
    assert captured_devices("router", topology="path") == ["y0", "y6"]
    assert captured_devices("h3", topology="chain") == ["y1qv0", "y3qv1"]


def test_a_link_that_aggregates_holds_packets_behind_its_delay() -> None:
    links = [{"from": "a", "to": "b", "delay": "5 ms", "forward": {"aggregation": "20 ms"}}]
    made = plan(topology="custom", hosts={"a": {}, "b": {}}, links=links, flows=[{"from": "a", "to": "b"}])
    slotted = [one.options for one in made.ports.qdiscs if struct.pack("=2q", 20_000_000, 20_000_000) in one.options]
    assert slotted == [qdisc.netem(delay_ns=5_000_000, slot_ns=20_000_000)]


def test_a_link_of_opportunities_serves_so_many_bytes_of_its_queue_at_a_time() -> None:
    link = {"from": "a", "to": "b", "rate": "200 kbit/s", "queue": "12 packets", "opportunity": "1500 bytes"}
    made = plan(topology="custom", hosts={"a": {}, "b": {}}, links=[link], flows=[{"from": "a", "to": "b"}])
    serving = [one.options for one in made.ports.qdiscs if struct.pack("=2q", 60_000_000, 60_000_000) in one.options]
    assert serving == [qdisc.netem(limit=12, slot_ns=60_000_000, slot_bytes=1500)] * 2
    assert not [one for one in made.ports.qdiscs if one.kind == "tbf"]


def test_opportunities_of_a_queue_in_bytes_or_of_a_kind_of_its_own_are_a_lines(tmp_path: Path) -> None:
    for queue in ("64 KiB", {"kind": "fq_codel"}):
        link = {"from": "a", "to": "b", "forward": {"rate": "200 kbit/s", "queue": queue, "opportunity": "1500 bytes"}}
        ends: dict[str, Any] = {"topology": "custom", "hosts": {"r": {}, "a": {}, "b": {}}}
        scenario = Scenario(**ends, links=[{"from": "r", "to": "a"}, link], flows=[{"from": "r", "to": "b"}])
        made = build(scenario.compile(), Place(), "st-")
        [line] = made.ports.lines
        assert (line.valve is None) == isinstance(queue, str)
        told = orders(scenario.compile(), made, "native", tmp_path, tmp_path, {}, capture=[], virtual=True)
        [order] = [one.split() for one in told.splitlines() if one.startswith("line ")]
        assert order[8:10] == ["1500", "60000000"]


def test_opportunities_are_a_rates_and_need_netem() -> None:
    def refused(place: Place, **link: str) -> tuple[str, str | None]:
        links = [{"from": "a", "to": "b", "opportunity": "1500 bytes", **link}]
        ends = {"topology": "custom", "hosts": {"a": {}, "b": {}}, "links": links}
        with pytest.raises(SawtoothError) as caught:
            check(Scenario(**ends, flows=[{"from": "a", "to": "b"}]).compile(), "native", place, where="here")
        return caught.value.code, caught.value.field

    assert refused(Place()) == ("conflict", "links.0.opportunity")
    assert refused(Place(netem=False), rate="1 Mbit/s") == ("unsupported", "links.opportunity")


def test_red_must_fit_into_linuxs_average() -> None:
    """``red_check_params``: 22 bits of ``max`` and a weight of 1/1024 are one bit too many; 1/512 fits."""
    queue = {"kind": "red", "limit": "9447360 bytes", "min": "787280 bytes", "max": "2361840 bytes"}
    error = refusal(path={"queue": queue})
    assert error.field == "queue.burst"
    assert "1/1024" in error.message
    check(Scenario(path={"queue": {**queue, "burst": 1200}}).compile(), "native", Place(), where="here")


def test_aggregation_needs_netem_and_a_link_of_its_own() -> None:
    links: list[dict[str, Any]] = [{"from": "a", "to": "b", "aggregation": "20 ms"}, {"from": "a", "to": "c"}]
    ends = {"topology": "custom", "hosts": {"a": {}, "b": {}, "c": {}}, "links": links}
    alone = Scenario(**ends, flows=[{"from": "a", "to": "b"}]).compile()
    check(alone, "native", Place(), where="here")
    shared = Scenario(**ends, cards={"a": {"rate": "1 Gbit/s"}}, flows=[{"from": "a", "to": "b"}]).compile()
    for compiled, place in ((alone, Place(netem=False)), (shared, Place())):
        with expected_error(code="unsupported", field="links.aggregation"):
            check(compiled, "native", place, where="here")
