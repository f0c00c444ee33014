//! `sawtooth._core.Policy` and `Environments`: agents as congestion controls, and simulations that stop for them.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_tcp::cc::agent::{Activation, Agent, Every, Layer, Network, OBSERVED, Sets};
use sawtooth_tcp::cc::module::Module;
use std::sync::Arc;

/// Events between two checks of signals.
const SLICE: u64 = 1_000_000;

/// Weights by output, and biases.
type Layers = Vec<(Vec<Vec<f64>>, Vec<f64>)>;

fn every(text: &str, micros: u64) -> PyResult<Every> {
    match text {
        "ack" => Ok(Every::Ack),
        "rtt" => Ok(Every::RoundTrip),
        "time" => Ok(Every::Micros(micros)),
        _ => Err(PyValueError::new_err(format!("decisions are not made every {text:?}"))),
    }
}

fn sets(text: &str) -> PyResult<Sets> {
    match text {
        "cwnd" => Ok(Sets::Cwnd),
        "rate" => Ok(Sets::Rate),
        "change" => Ok(Sets::Change),
        _ => Err(PyValueError::new_err(format!("no action is {text:?}"))),
    }
}

/// See the stub.
#[pyfunction]
pub fn observed() -> Vec<(&'static str, &'static str, &'static str)> {
    OBSERVED.to_vec()
}

/// See the stub.
#[pyfunction]
pub fn action_bounds(action: &str) -> PyResult<(f64, f64)> {
    let [least, most] = sets(action)?.bounds();
    Ok((least, most))
}

/// See the stub.
#[pyclass(module = "sawtooth._core", frozen)]
pub struct Policy {
    network: Arc<Network>,
    agent: Arc<Agent>,
}

impl Policy {
    pub fn loaded(&self) -> Arc<dyn Module> {
        self.agent.clone()
    }
}

#[pymethods]
impl Policy {
    #[new]
    fn new(
        name: &str,
        every: &str,
        micros: u64,
        action: &str,
        inputs: Vec<usize>,
        layers: Layers,
        activation: &str,
    ) -> PyResult<Self> {
        let layers = layers.into_iter().map(|(weights, biases)| Layer { weights, biases }).collect();
        let activation = Activation::from_name(activation)
            .ok_or_else(|| PyValueError::new_err("the activation is neither tanh nor relu"))?;
        let network = Network::new(inputs, layers, activation)
            .ok_or_else(|| PyValueError::new_err("the sizes of the layers do not match"))?;
        let network = Arc::new(network);
        let (every, sets) = (self::every(every, micros)?, sets(action)?);
        let agent = Agent { name: name.into(), every, sets, network: Some(network.clone()) };
        Ok(Policy { network, agent: Arc::new(agent) })
    }

    /// See the stub.
    fn decide(&self, seen: PyReadonlyArray1<'_, f64>) -> PyResult<f64> {
        let seen = seen.as_slice()?.try_into();
        Ok(self.network.decide(&seen.map_err(|_| PyValueError::new_err("this is no observation"))?))
    }
}

/// See the stub.
#[pyclass(module = "sawtooth._core")]
pub struct Environments {
    agent: Arc<Agent>,
    all: Vec<One>,
}

struct One {
    simulation: Option<Simulation>,
    /// The first flow that asks for decisions.
    flow: usize,
    is_over: bool,
}

impl One {
    /// Runs up to the next decision or the end, or for some events. True: it has got there.
    fn advance(&mut self) -> bool {
        let Some(simulation) = self.simulation.as_mut().filter(|_| !self.is_over) else { return true };
        if simulation.waiting().is_none() {
            self.is_over = simulation.advance_to_decision(SLICE);
        }
        self.is_over || simulation.waiting().is_some()
    }
}

/// Observations one after the other; which connection decides, or -1 at the end.
type Seen<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>);

#[pymethods]
impl Environments {
    #[new]
    fn new(count: usize, every: &str, micros: u64, action: &str) -> PyResult<Self> {
        let (every, sets) = (self::every(every, micros)?, sets(action)?);
        let agent = Arc::new(Agent { name: "agent".into(), every, sets, network: None });
        Ok(Environments { agent, all: (0..count).map(|_| One { simulation: None, flow: 0, is_over: true }).collect() })
    }

    /// See the stub.
    fn begin(&mut self, index: usize, scenario: &str, flows: Vec<usize>) -> PyResult<()> {
        let agent: Arc<dyn Module> = self.agent.clone();
        let flow = flows.first().copied().unwrap_or(0);
        let agents = flows.into_iter().map(|flow| (flow, agent.clone())).collect();
        let scenario = Scenario::with_modules(scenario, &agents);
        let simulation = Simulation::new(scenario.map_err(PyValueError::new_err)?);
        *self.one(index)? = One { simulation: Some(simulation), flow, is_over: false };
        Ok(())
    }

    /// See the stub.
    fn choose(&mut self, actions: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let actions = actions.as_array();
        if actions.len() != self.all.len() {
            return Err(PyValueError::new_err("there is not one action for each environment"));
        }
        for (one, &action) in self.all.iter_mut().zip(actions) {
            if let Some(simulation) = &mut one.simulation {
                simulation.choose(action);
            }
        }
        Ok(())
    }

    /// See the stub.
    fn advance<'py>(&mut self, py: Python<'py>) -> PyResult<Seen<'py>> {
        for one in &mut self.all {
            while !py.detach(|| one.advance()) {
                py.check_signals()?;
            }
        }
        let mut seen = Vec::with_capacity(self.all.len() * OBSERVED.len());
        let mut who = Vec::with_capacity(self.all.len());
        for one in &self.all {
            match one.simulation.as_ref().and_then(Simulation::waiting) {
                Some((connection, observation)) => {
                    seen.extend(observation);
                    who.push(connection.cast_signed());
                }
                None => {
                    seen.extend(
                        one.simulation.as_ref().and_then(|one_of| one_of.observe(one.flow)).unwrap_or_default(),
                    );
                    who.push(-1);
                }
            }
        }
        Ok((seen.into_pyarray(py), who.into_pyarray(py)))
    }

    /// See the stub.
    fn take<'py>(&mut self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        match &mut self.one(index)?.simulation {
            Some(simulation) => crate::tables(py, simulation),
            None => Ok(PyDict::new(py)),
        }
    }

    /// See the stub.
    fn counts(&self, index: usize) -> (u64, u64, u64) {
        let simulation = self.all.get(index).and_then(|one| one.simulation.as_ref());
        simulation.map_or((0, 0, 0), |one| (one.now().nanos(), one.events(), one.delivered_packets()))
    }
}

impl Environments {
    fn one(&mut self, index: usize) -> PyResult<&mut One> {
        self.all.get_mut(index).ok_or_else(|| PyValueError::new_err(format!("no environment {index}")))
    }
}
