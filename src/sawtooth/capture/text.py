"""A capture as text: one line for the capture and for each of its busiest connections, or a page about one."""

from __future__ import annotations

from typing import Any

from sawtooth import sanitize
from sawtooth.capture.marks import rate
from sawtooth.capture.summary import Judgement
from sawtooth.io.text_table import aligned, size

LISTED = 20
"""Connections listed one by one, those with the most data first."""

_LIMITS = {
    "sender_s": "the application had nothing to send",
    "receiver_window_s": "the receiver's window",
    "congestion_window_s": "the congestion window",
    "path_s": "the path: the bottleneck's queue was not empty",
    "idle_s": "idle: nothing in flight",
    "unknown_s": "unknown: no round trip seen yet",
}

_SHORT = {
    "sender": "nothing to send",
    "receiver_window": "receive window",
    "congestion_window": "congestion window",
    "path": "path",
    "idle": "idle",
    "unknown": "unknown",
}
"""Short names of limits for a column."""

_PLACES = {
    "data before": "data lost between the sender and the capture point",
    "data after": "data lost between the capture point and the receiver",
    "data both": "data lost on both sides of the capture point",
    "acknowledgements": "acknowledgements lost",
}


def describe(facts: dict[str, Any], connection: int | None = None, width: int | None = None) -> str:
    """Several lines: the capture, then its connections, or one of them in full. ``width`` is the terminal's, in
    characters: a connection that does not fit into one line takes two."""
    wanted = facts["connections"] if connection is None else [facts["connections"][connection]]
    lines = [_capture(facts), *(f"problem: {sanitize.sentence(problem)}" for problem in facts["problems"])]
    transfers = [(one, way) for one in wanted for way in one["directions"] if "data_packets" in way]
    transfers.sort(key=lambda transfer: transfer[1]["payload_bytes"], reverse=True)
    if not transfers:
        lines += ["", *map(_empty, wanted[:LISTED])] if wanted else []
        if len(wanted) > LISTED:
            lines.append(f"… and {len(wanted) - LISTED} more; --json has all")
    elif connection is None and len(transfers) != 1:
        lines += ["", *_listed(transfers[:LISTED], width)]
        if len(transfers) > LISTED:
            lines.append(f"… and {len(transfers) - LISTED} more; --json has all")
        ways = sum(one is transfers[0][0] for one, _ in transfers)
        both = ", both ways" if ways > 1 else ""
        lines += ["", f"to see one connection in full{both}: --connection {transfers[0][0]['index']}"]
    else:
        for one, way in transfers:
            lines += ["", *_page(one, way)]
    return "\n".join(lines)


def _capture(facts: dict[str, Any]) -> str:
    connections, copies = len(facts["connections"]), facts["copies"]
    passed = [f"; {count} packets of {name} are not analyzed" for name, count in facts["not_looked_into"].items()]
    if not facts["packets"]:
        return f"{sanitize.where(facts['file'])}: contains no packets"
    if not connections:
        packets = f"{facts['packets']} packet{'' if facts['packets'] == 1 else 's'}"
        kinds = ", ".join(facts["link_types"])
        return f"{sanitize.where(facts['file'])}: {packets} on {kinds}, none of them TCP{''.join(passed)}"
    return (
        f"{sanitize.where(facts['file'])}: {facts['packets']} packets, {size(facts['bytes'], 'bytes')} "
        f"on {', '.join(facts['link_types'])}, "
        f"{facts['last_s'] - facts['first_s']:.3f} s, {connections} TCP connection{'' if connections == 1 else 's'}"
        + (f"; {copies} packets captured on several devices; the copies are ignored" if copies else "")
        + "".join(passed)
    )


def _listed(transfers: list[tuple[dict[str, Any], dict[str, Any]]], width: int | None) -> list[str]:
    """One line each, or two if one would be too long, as with IPv6 addresses."""
    cells = [("data", "goodput", "RTT", "lost", "retransmits", "limit"), *(_numbers(*each) for each in transfers)]
    ends = [("from", "to"), *(_ends(*each) for each in transfers)]
    names = ["#", *(str(one["index"]) for one, _ in transfers)]
    whole = [[name, *pair, *row] for name, pair, row in zip(names, ends, cells, strict=True)]
    lines = aligned(whole, (1, 2, 8))
    if width is None or max(map(len, lines)) <= width:
        return lines
    numbers = aligned([["", *row] for row in cells], (6,))
    within = max(map(len, names))
    return [
        line
        for name, (source, target), row in zip(names, ends, numbers, strict=True)
        for line in (*_between(f"{name:>{within}}  ", source, target, width), f"{'':{within}}{row}")
    ]


def _between(start: str, source: str, target: str, width: int) -> list[str]:
    line = f"{start}{source} → {target}"
    return [line] if len(line) <= width else [f"{start}{source}", f"{'':{len(start) - 2}}→ {target}"]


def _numbers(one: dict[str, Any], way: dict[str, Any]) -> tuple[str, ...]:
    lost = way["loss"]["rate"]
    return (
        *(size(way["acknowledged_bytes"], "bytes"), rate(way["goodput_bps"]), _time(way["rtt"]["base_s"])),
        *("–" if lost is None else f"{lost:.2%}", str(way["retransmits"]), _longest(one, way)),
    )


def _empty(one: dict[str, Any]) -> str:
    shaken = one["handshake"]
    sent = [*one["directions"], *(shaken[end] for end in ("client", "server") if shaken[end])]
    again = sum(end["retransmits"] for end in sent)
    resent = f", {again} packet{'' if again == 1 else 's'} sent again" if again else ""
    return f"connection {one['index']}: {one['client']} → {one['server']}, no data{resent}, {one['closed']}"


def _page(one: dict[str, Any], way: dict[str, Any]) -> list[str]:
    source, target = _ends(one, way)
    rtt, loss, shaken = way["rtt"], way["loss"], one["handshake"]
    lines = [
        f"connection {one['index']}: {source} → {target}, {size(way['acknowledged_bytes'], 'bytes')} "
        f"in {way['duration_s']:.3f} s, {rate(way['goodput_bps'])}, {one['closed']}",
        f"  handshake     {_handshake(shaken, way)}",
        f"  capture point {_point(one)}",
    ]
    if (trip := rtt["whole"]) is not None:
        lines.append(
            f"  round trip    at least {_time(trip['min_s'])}, median {_time(trip['median_s'])}, at most "
            f"{_time(trip['max_s'])}: {trip['samples']} samples from the capture point to the {rtt['far']} and back, "
            f"plus {_time(rtt['near_s'])} on the other side of it"
        )
    lines += [
        f"  in flight     at most {size(way['in_flight_max_bytes'], 'bytes')}; largest receive window "
        f"{size(way['window_max_bytes'], 'bytes')}",
        f"  retransmitted {way['retransmits']} of {way['data_packets']} segments: {way['fast']} fast, "
        f"{way['timeout_retransmits']} after {way['timeouts']} timeouts, {way['tail_probes']} tail loss probes; "
        f"{way['spurious']} spurious",
        f"  receiver      {way['duplicate_acks']} duplicate ACKs, {way['sack_blocks']} SACK blocks, "
        f"{way['dsacks']} DSACKs, {way['zero_windows']} zero windows for {way['zero_window_s']:.3f} s",
        f"  reordering    {way['out_of_order']} segments out of order"
        + (f", by at most {_time(way['reordering_s'])}" if way["out_of_order"] else "")
        + (f"; {way['duplicated_packets']} packets captured twice" if way["duplicated_packets"] else ""),
    ]
    if loss["rate"] is not None:
        where = f", {_PLACES[loss['where']]} ({loss['sure']})" if loss["where"] in _PLACES else ""
        lines.append(
            f"  lost          {loss['lost']} of {loss['segments']} segments, {loss['rate']:.3%}, "
            f"in {loss['runs']} runs{_bursts(loss)}{where}"
        )
        lines.append(f"  as a scenario {loss['scenario']}")
    if way["ce_marks"] or way["ecn_echoes"] or way["window_reductions"]:
        lines.append(
            f"  marked        {way['ce_marks']} segments seen with CE; {way['ecn_echoes']} acknowledgements with ECE, "
            f"{way['window_reductions']} segments with CWR (the sender reduced its window)"
        )
    spent = sorted(((seconds, _LIMITS[name]) for name, seconds in way["limits"].items() if seconds > 0), reverse=True)
    lines += [f"  {'limited by' if place == 0 else '':<13} {s:8.3f} s  {what}" for place, (s, what) in enumerate(spent)]
    return lines


def _bursts(loss: dict[str, Any]) -> str:
    """Losses near each other in time, adjacent or not."""
    if loss["largest_burst"] <= loss["longest_run"]:
        return ""
    return f", {loss['bursts']} bursts, the largest of {loss['largest_burst']} in {_time(loss['largest_burst_s'])}"


def _ends(one: dict[str, Any], way: dict[str, Any]) -> tuple[str, str]:
    ends = (one["client"], one["server"])
    return ends if way["from"] == "client" else (ends[1], ends[0])


def _handshake(shaken: dict[str, Any], way: dict[str, Any]) -> str:
    if not shaken["seen"]:
        return f"not seen; segments of {way['mss']} bytes"
    options = [name for name in ("sack", "timestamps", "ecn") if shaken[name]]
    scales = [shaken[end]["window_scale"] for end in ("client", "server")]
    scaling = f"window scale {scales[0]} and {scales[1]}" if None not in scales else "no window scale"
    return f"segments of {way['mss']} bytes, {scaling}, {', '.join(options) or 'no other options'}"


def _point(one: dict[str, Any]) -> str:
    point = one["capture_point"]
    if point["at"] == "unknown":
        return "unknown: no round trip to both ends seen"
    halves = f"{_time(point['to_client_s'])} to the client and back, {_time(point['to_server_s'])} to the server"
    return f"{'between the ends' if point['at'] == 'middle' else 'at the ' + point['at']}: {halves}"


def _longest(one: dict[str, Any], way: dict[str, Any]) -> str:
    limit = Judgement(one["directions"].index(way), way).limit
    return "–" if limit is None else _SHORT[limit]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
