"""Environments, policies and Python functions as congestion controls."""

import io
import random
import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import pytest
from gymnasium.utils.env_checker import check_env
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import sawtooth.gym
from expected_error import expected_error
from sawtooth import Scenario
from sawtooth.engines import get
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError, install_extra
from sawtooth.gym import OBSERVED, Observations, Policy, SawtoothEnv, SawtoothVectorEnv, play
from sawtooth.scoreboard import Networks

LOSSY: dict[str, Any] = {
    "duration": "3 s",
    "interval": "100 ms",
    "path": {"rate": "20 Mbit/s", "rtt": "30 ms", "queue": "30 packets", "loss": "1%"},
    "flows": [{"name": "own", "cc": "reno"}, {"name": "other", "cc": "cubic"}],
}
PLACES = list(OBSERVED)
RENO = Path(__file__).parent / "reno.py"


def policy(**changes: Any) -> Policy:
    random = np.random.default_rng(4)
    layers = ((random.normal(size=(4, 3)), random.normal(size=4)), (random.normal(size=(1, 4)) / 3, np.array([0.1])))
    return Policy(**{"inputs": ("loss_share", "rtt_ratio", "log2_cwnd"), "layers": layers} | changes)


def bits(tables: Any) -> dict[str, bytes]:
    return {
        f"{table}.{name}": np.ascontiguousarray(columns[name]).tobytes()
        for table, columns in tables.items()
        for name in columns
        if len(columns[name])
    }


def episode(env: SawtoothEnv, decide: Any, seed: int | None = None) -> tuple[list[Any], Any]:
    """The steps' answers, and the tables."""
    seen, _ = env.reset(seed=seed)
    answers, over = [], False
    while not over:
        seen, reward, _, over, _ = env.step(np.array([decide(seen)]))
        answers.append((seen.tobytes(), reward))
    return answers, bits(env.tables())


@pytest.mark.parametrize("every", ["rtt", "ack", "10 ms"])
@pytest.mark.parametrize("action", ["cwnd", "rate", "change"])
def test_gymnasiums_checker_accepts_it(every: str, action: str) -> None:
    env = gymnasium.make("sawtooth/Path-v0", scenario=LOSSY, every=every, action=action)
    # It recommends bounds of 1 for actions and finite ones for observations; these have units.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check_env(env.unwrapped, skip_render_check=True)


def test_a_vector_environment_is_made_by_name() -> None:
    env = gymnasium.make_vec("sawtooth/Path-v0", num_envs=3, scenarios=LOSSY)
    seen, _ = env.reset(seed=1)
    assert env.observation_space.contains(seen)


def test_the_same_seed_and_actions_give_the_same_bytes() -> None:
    env = SawtoothEnv(LOSSY)
    fixed = [episode(env, lambda _: 20.0, seed=7) for _ in range(2)]
    assert fixed[0] == fixed[1]
    assert episode(env, lambda _: 20.0, seed=8) != fixed[0]
    assert episode(SawtoothEnv(LOSSY), lambda _: 20.0) == episode(SawtoothEnv(LOSSY), lambda _: 20.0)


def test_a_window_that_is_repeated_is_a_fixed_window_however_often() -> None:
    tables = [episode(SawtoothEnv(LOSSY, every=every), lambda _: 20.0)[1] for every in ("ack", "rtt", "10 ms")]
    own = episode(SawtoothEnv(LOSSY), lambda seen: seen[PLACES.index("cwnd")])[1]
    assert tables[0] == tables[1] == tables[2]
    assert own == episode(SawtoothEnv(LOSSY), lambda _: 10.0)[1], "the initial window is 10"


def test_what_is_seen_agrees_with_the_tables() -> None:
    env = SawtoothEnv(LOSSY, every="ack")
    env.reset()
    acked, over, interval = 1.0, False, 0.0
    while not over:
        seen, reward, _, over, _ = env.step(np.array([15.0]))
        acked += reward
        interval += Observations(seen)["interval"]
    end = Observations(seen)
    rows = env.tables()["tcp_info"]
    last = np.flatnonzero(rows["flow"] == 0)[-1]
    # Linux counts the handshake as one delivery, the first step's packets were seen by reset.
    assert abs(rows["delivered_segments"][last] - acked) <= 2
    assert rows["srtt_s"][last] == pytest.approx(end["srtt"], abs=1e-6)
    assert rows["min_rtt_s"][last] == pytest.approx(end["min_rtt"], abs=1e-6)
    assert end["cwnd"] == 15
    assert interval == pytest.approx(end["time"], abs=0.1)


def test_environments_side_by_side_are_the_same_as_alone() -> None:
    other = LOSSY | {"path": LOSSY["path"] | {"rtt": "50 ms"}}
    both = SawtoothVectorEnv([LOSSY, other], 4, every="rtt")
    seen, _ = both.reset(seed=5)
    alone = [SawtoothEnv(LOSSY if index % 2 == 0 else other) for index in range(4)]
    for index, one in enumerate(alone):
        assert one.reset(seed=5 + index)[0].tobytes() == seen[index].tobytes()
    for step in range(20):
        actions = np.array([[10.0 + step + index] for index in range(4)])
        seen, rewards, _, _, _ = both.step(actions)
        for index, one in enumerate(alone):
            own, reward, *_ = one.step(actions[index])
            assert (own.tobytes(), reward) == (seen[index].tobytes(), rewards[index])


def test_the_step_after_an_episode_begins_the_next() -> None:
    env = SawtoothVectorEnv(LOSSY | {"duration": "1 s"}, 2)
    env.reset(seed=1)
    over = np.zeros(2, dtype=bool)
    while not over.any():
        seen, _, _, over, _ = env.step(np.full((2, 1), 10.0))
    ended = np.flatnonzero(over)[0]
    seen, rewards, _, over, _ = env.step(np.full((2, 1), 10.0))
    assert rewards[ended] == 0.0
    assert not over[ended]
    assert Observations(seen)["time"][ended] < 0.1


def test_a_policy_in_a_scenario_decides_as_the_environment_does(tmp_path: Path) -> None:
    own = policy()
    own.save(tmp_path / "own.npz")
    flows = [{"name": "own", "cc": {"source": str(tmp_path / "own.npz")}}, LOSSY["flows"][1]]
    run = Sim().run(Scenario.from_dict(LOSSY | {"flows": flows})).tables
    env = SawtoothEnv(LOSSY, every=own.every, action=own.action)
    assert episode(env, own)[1] == bits(run)


def test_the_page_has_every_observation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "gym.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {unit or '–'} | {meaning} |" for name, (unit, meaning) in OBSERVED.items()]
    assert [row for row in rows if row not in page] == []


def test_a_policy_is_read_as_it_was_written(tmp_path: Path) -> None:
    own = policy(every="10 ms", action="rate")
    own.save(tmp_path / "own.npz")
    read = Policy.load(tmp_path / "own.npz")
    assert (read.inputs, read.every, read.action, read.name) == (own.inputs, own.every, own.action, "own")
    seen = np.random.default_rng(1).random(len(OBSERVED))
    assert read(seen) == own(seen)


def test_a_policy_is_numpys_network() -> None:
    own = policy()
    seen = np.random.default_rng(1).random(len(OBSERVED))
    inputs = seen[[PLACES.index(name) for name in own.inputs]]
    (first, biases), (last, bias) = own.layers
    value = last @ np.tanh(first @ inputs + biases) + bias
    assert own(seen) == pytest.approx(np.clip(value[0], -1, 1), rel=1e-12)


def model(path: Path, *layers: Any, activation: str = "Tanh", matmul: bool = False) -> Path:
    """An ONNX file with these layers: Gemm with weights by output, as PyTorch writes it, or MatMul and Add."""
    nodes, fixed, value = [], [], "seen"
    for at, (weights, biases) in enumerate(layers):
        w = np.asarray(weights, dtype=np.float32)
        fixed.append(numpy_helper.from_array(w.T if matmul else w, f"w{at}"))
        fixed.append(numpy_helper.from_array(np.asarray(biases, dtype=np.float32), f"b{at}"))
        if matmul:
            nodes.append(helper.make_node("MatMul", [value, f"w{at}"], [f"m{at}"]))
            nodes.append(helper.make_node("Add", [f"m{at}", f"b{at}"], [f"y{at}"]))
        else:
            nodes.append(helper.make_node("Gemm", [value, f"w{at}", f"b{at}"], [f"y{at}"], transB=1))
        value = f"y{at}"
        if at + 1 < len(layers):
            nodes.append(helper.make_node(activation, [value], [f"a{at}"]))
            value = f"a{at}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("seen", value)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "policy", ends[:1], ends[1:], fixed)), path)
    return path


@pytest.mark.parametrize("matmul", [False, True])
@pytest.mark.parametrize(("operator", "of"), [("Tanh", np.tanh), ("Relu", lambda x: np.maximum(x, 0))])
def test_a_policy_from_onnx_is_its_network(tmp_path: Path, operator: str, of: Any, matmul: bool) -> None:
    own = policy()
    read = Policy.from_onnx(model(tmp_path / "own.onnx", *own.layers, activation=operator, matmul=matmul), own.inputs)
    seen = np.random.default_rng(1).random(len(OBSERVED))
    inputs = seen[[PLACES.index(name) for name in own.inputs]]
    (first, biases), (last, bias) = own.layers
    assert read(seen) == pytest.approx(np.clip((last @ of(first @ inputs + biases) + bias)[0], -1, 1), rel=1e-5)
    read.save(tmp_path / "own.npz")
    assert Policy.load(tmp_path / "own.npz")(seen) == read(seen)


def test_models_with_something_else_than_dense_layers_are_refused(tmp_path: Path) -> None:
    one = (np.ones((1, 3)), np.zeros(1))
    two = (np.ones((3, 3)), np.zeros(3))
    for activation in ("Sigmoid", "Softmax"):
        with pytest.raises(SawtoothError) as caught:
            Policy.from_onnx(model(tmp_path / "own.onnx", two, one, activation=activation), policy().inputs)
        error = caught.value
        assert (error.code, error.file) == ("bad-policy", str(tmp_path / "own.onnx"))
        assert error.message == f"the model has the operator {activation} after 1 layers"
        assert error.fix == "give dense layers with tanh or ReLU between them, or call the model from a Python file"
    with pytest.raises(SawtoothError, match="not an ONNX file"):
        Policy.from_onnx(RENO, policy().inputs)
    with pytest.raises(SawtoothError, match="more than 32 layers"):
        Policy.from_onnx(model(tmp_path / "own.onnx", *[two] * 40, one), policy().inputs)
    with expected_error(field="activation", match="relu"):
        policy(activation="sigmoid")


def test_a_model_that_onnx_would_compute_in_another_way_is_refused(tmp_path: Path) -> None:
    path = model(tmp_path / "own.onnx", (np.ones((1, 3)), np.zeros(1)))
    (tmp_path / "w.bin").write_bytes(np.ones(3, dtype=np.float32).tobytes())

    def refused(change: Any, what: str) -> None:
        given = onnx.load(path)
        change(given.graph)
        (tmp_path / "other.onnx").write_bytes(given.SerializeToString())
        with expected_error(code="bad-policy", match=what):
            Policy.from_onnx(tmp_path / "other.onnx", policy().inputs)

    def weights(graph: Any, value: Any) -> None:
        graph.initializer[0].CopyFrom(numpy_helper.from_array(value, "w0"))

    def elsewhere(graph: Any) -> None:
        set_external_data(graph.initializer[0], "w.bin")
        graph.initializer[0].ClearField("raw_data")

    refused(elsewhere, "in another file")
    refused(lambda graph: graph.node[0].input.__setitem__(2, "seen"), "other values")
    refused(lambda graph: setattr(graph.node[0], "domain", "other"), "other values")
    refused(lambda graph: graph.node[0].output.pop(), "with 0 outputs")
    refused(lambda graph: weights(graph, np.ones((1, 3), dtype=np.complex64)), "no real numbers")
    refused(lambda graph: weights(graph, np.ones((2, 3), dtype=np.float32)), "sizes of the layers")
    column = numpy_helper.from_array(np.ones((3, 1), dtype=np.float32), "b0")
    refused(
        lambda graph: (weights(graph, np.ones((3, 3))), graph.initializer[1].CopyFrom(column)), "biases are not one"
    )


def test_a_damaged_model_is_an_error_or_a_policy(tmp_path: Path) -> None:
    path = model(tmp_path / "own.onnx", *policy().layers)
    whole, chosen = path.read_bytes(), random.Random(5)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chosen.randint(1, 4)):
            damaged[chosen.randrange(len(damaged))] = chosen.randrange(256)
        path.write_bytes(damaged[: chosen.choice([len(damaged), chosen.randrange(len(damaged))])])
        try:
            Policy.from_onnx(path, policy().inputs)
        except SawtoothError as error:
            assert error.code == "bad-policy", error


@pytest.mark.parametrize(
    ("path", "off"),
    [
        ({"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"}, 0.01),
        ({"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "20 packets"}, 0.01),
        ({"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp", "loss": "0.1%"}, 0.02),
        ({"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp", "loss": "1%"}, 0.04),
    ],
)
def test_reno_in_python_gets_what_reno_gets(path: dict[str, str], off: float) -> None:
    def goodput(cc: Any) -> float:
        runs = [
            Sim().run(Scenario.from_dict({"duration": "20 s", "seed": seed, "path": path, "flows": [{"cc": cc}]}))
            for seed in (1, 2)
        ]
        return float(np.mean([run.tables["intervals"]["goodput_bps"].mean() for run in runs]))

    assert goodput({"source": str(RENO)}) == pytest.approx(goodput("reno"), rel=off)


def test_a_python_file_decides_for_all_connections_of_all_its_flows() -> None:
    arrivals = {"kind": "arrivals", "load": "2 Mbit/s", "sizes": "50 kB"}
    cc = {"source": str(RENO)}
    flows = [{"cc": cc, "count": 2}, {"name": "short", "cc": cc, "source": arrivals}]
    run = Sim().run(Scenario.from_dict(LOSSY | {"flows": flows}))
    named = Sim().run(Scenario.from_dict(LOSSY | {"flows": [one | {"cc": "reno"} for one in flows]}))
    finished = [(one.tables["flows"]["flow"] == 1).sum() for one in (run, named)]
    assert finished[0] > 5
    assert finished[0] == pytest.approx(finished[1], abs=3)


def test_play_returns_the_run() -> None:
    run = play(LOSSY, lambda: lambda seen: 20.0, flow="own")
    assert bits(run.tables) == bits(play(LOSSY, lambda: lambda seen: 20.0, every="rtt").tables)
    assert run.engine == "sim"


def test_the_scoreboard_takes_policies_and_python_files(tmp_path: Path) -> None:
    policy().save(tmp_path / "learned.npz")
    shutil.copy(RENO, tmp_path / "mine.py")
    networks = Networks.load(None)
    controls = networks.controls(["cubic", str(tmp_path / "learned.npz"), str(tmp_path / "mine.py")])
    assert [one.name for one in controls] == ["cubic", "learned", "mine"]
    study = networks.study(networks.chosen(["cable/shallow/alone"]), controls)
    assert {str(point.scenario.flows[0].cc) for point in study.points()} == {"cubic", "learned", "mine"}


WRONG: dict[str, tuple[Any, str]] = {
    "every": (lambda: SawtoothEnv(LOSSY, every="10"), "missing-unit"),
    "never": (lambda: SawtoothEnv(LOSSY, every="0 s"), "out-of-range"),
    "action": (lambda: SawtoothEnv(LOSSY, action="window"), "unknown-name"),
    "flow": (lambda: SawtoothEnv(LOSSY, flow="onw"), "unknown-name"),
    "place": (lambda: SawtoothEnv(LOSSY, flow=2), "out-of-range"),
    "count": (lambda: SawtoothEnv(LOSSY | {"flows": [{"count": 2}]}), "unsupported"),
    "file": (lambda: SawtoothEnv("nowhere.toml"), "file-not-found"),
    "no scenario": (lambda: SawtoothVectorEnv([]), "missing-field"),
    "input": (lambda: policy(inputs=("loss_share", "rtt_ratio", "cwdn")), "unknown-name"),
    "sizes": (lambda: policy(inputs=("loss_share",)), "bad-policy"),
    "nan": (lambda: policy(layers=((np.array([[np.nan] * 3]), np.zeros(1)),)), "bad-policy"),
    "large": (
        lambda: policy(layers=((np.zeros((1 << 16, 3)), np.zeros(1 << 16)), (np.zeros((1, 1 << 16)), [0]))).core,
        "bad-policy",
    ),
    "rows without columns": (lambda: policy(inputs=(), layers=((np.zeros((1 << 40, 0)), []),)), "bad-policy"),
    "no policy": (lambda: Policy.read(b"no"), "bad-policy"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_an_error_with_a_code_and_a_fix(case: str) -> None:
    with expected_error(code=WRONG[case][1]) as caught:
        WRONG[case][0]()
    assert caught.value.fix


PYTHON: dict[str, tuple[str, str]] = {
    "syntax": ("def connect(:\n", "bad-policy"),
    "nothing": ("x = 1\n", "bad-policy"),
    "raises": ("1 / 0\n", "bad-policy"),
    "every": ("every = '3'\ndef connect():\n    return lambda seen: 3\n", "missing-unit"),
    "decides": ("def connect():\n    return lambda seen: seen['cwdn']\n", "policy-failed"),
    "text": ("def connect():\n    return lambda seen: 'much'\n", "policy-failed"),
    "nan": ("def connect():\n    return lambda seen: float('nan')\n", "policy-failed"),
    "exits": ("import sys\nsys.exit(0)\n", "bad-policy"),
    "decides to exit": ("import sys\ndef connect():\n    return lambda seen: sys.exit(0)\n", "policy-failed"),
}


@pytest.mark.parametrize("case", PYTHON)
def test_what_is_wrong_with_a_python_file_is_said(case: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PYTHON[case][0])
    with expected_error(code=PYTHON[case][1], file=str(file)) as caught:
        Sim().run(Scenario.from_dict(LOSSY | {"flows": [{"cc": {"source": str(file)}}]}))
    assert caught.value.fix


def test_files_of_several_kinds_and_parameters_are_refused(tmp_path: Path) -> None:
    policy().save(tmp_path / "mine.npz")
    own = {"source": str(tmp_path / "mine.npz")}
    for flows in ([{"cc": own}, {"cc": {"source": str(RENO)}}], [{"cc": own | {"parameters": {"beta": 1}}}]):
        with expected_error(code="conflict"):
            Sim().check(Scenario.from_dict(LOSSY | {"flows": flows}))


@pytest.mark.parametrize("name", ["bbr.py", "mine.py", "mine.npz", "coarse.c"])
@pytest.mark.parametrize("runs", [SawtoothEnv, lambda given: play(given, lambda: lambda seen: 20.0)])
def test_files_beside_a_flow_decided_from_python_are_refused(runs: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(RENO.read_bytes())
    cc = {"source": str(tmp_path / name)}
    with expected_error(code="unsupported", field="flows.1.cc", fix='write cc = "reno"'):
        runs(LOSSY | {"flows": [LOSSY["flows"][0], {"cc": cc}]})


def test_a_function_replaces_the_flows_own_file_but_not_one_in_c() -> None:
    def own(cc: Any) -> Any:
        return LOSSY | {"flows": [{"name": "own", "cc": cc}, LOSSY["flows"][1]]}

    def played(cc: Any) -> Any:
        return bits(play(own(cc), lambda: lambda seen: 20.0).tables)

    assert played({"source": str(RENO)}) == played("reno")
    with expected_error(code="unsupported", field="flows.0.cc"):
        played({"source": "coarse.c"})


def test_a_python_file_may_define_data_classes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\nclass State:\n"
        "    window: float = 20.0\n\ndef connect():\n    return lambda seen: State().window\n"
    )
    Sim().run(Scenario.from_dict(LOSSY | {"flows": [{"cc": {"source": str(file)}}]}))


def test_a_control_in_python_is_not_captured(tmp_path: Path) -> None:
    flows = [LOSSY["flows"][1], {"cc": {"source": str(RENO)}}]
    with expected_error(code="unsupported", field="flows.1.cc"):
        Sim(capture=tmp_path).check(Scenario.from_dict(LOSSY | {"flows": flows}))


def test_pages_on_one_connection_are_an_environment() -> None:
    def env(**changes: int) -> SawtoothEnv:
        return SawtoothEnv(LOSSY | {"flows": [{"source": {"kind": "pages", "objects": 5, "sizes": "20 kB"} | changes}]})

    with pytest.raises(SawtoothError) as caught:
        env()
    assert "source.connections = 1" in (caught.value.fix or "")
    env(connections=1).reset()


@pytest.mark.parametrize("env", [SawtoothEnv, SawtoothVectorEnv])
def test_a_step_before_reset_raises_as_gymnasium_does(env: Any) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        env(LOSSY).step(np.array([[10.0]]))


@pytest.mark.parametrize("engine", ["model", "kernel"])
def test_other_engines_refuse_a_policy(engine: str, tmp_path: Path) -> None:
    policy().save(tmp_path / "mine.npz")
    scenario = Scenario.from_dict(LOSSY | {"flows": [{"cc": {"source": str(tmp_path / "mine.npz")}}]})
    with expected_error(code="unsupported", fix="use --engine sim"):
        get(engine).check(scenario)


def test_a_header_that_claims_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header,
        {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 3)},  # type: ignore[arg-type]
    )
    given = io.BytesIO()
    with zipfile.ZipFile(given, "w") as archive:
        archive.writestr("weights0.npy", header.getvalue())
    with expected_error(code="bad-policy"):
        Policy.read(given.getvalue())


def test_a_damaged_policy_is_an_error_or_a_policy(tmp_path: Path) -> None:
    policy().save(tmp_path / "own.npz")
    whole, draw = (tmp_path / "own.npz").read_bytes(), random.Random(3)
    for _ in range(300):
        damaged = bytearray(whole[: draw.randrange(1, len(whole))] if draw.random() < 0.3 else whole)
        for _ in range(draw.randrange(4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            Policy.read(bytes(damaged))
        except SawtoothError as error:
            assert error.code in ("bad-policy", "unknown-name", "bad-quantity", "missing-unit", "unknown-unit")
            assert error.fix


def test_without_gymnasium_the_rest_works_and_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "sawtooth.gym.environment")
    monkeypatch.delattr(sawtooth.gym, "environment", raising=False)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with expected_error(code="tool-missing", fix=install_extra("gym")):
        sawtooth.gym.SawtoothEnv  # noqa: B018
