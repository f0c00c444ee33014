//! What a scenario file may give as a queue: the limit of a tail-drop queue, or a table of a kind.

use crate::problem::FieldProblems;
use crate::queue::{DEFAULT_FRAMES, Discipline};
use crate::schema::Definitions;
use crate::table::{Field, ReadContext, Rule};
use crate::units::{Queue, Unit};
use crate::value::Value;
use crate::view::View;

/// The values that a scenario file may give as a queue. Text is a tail-drop queue's limit.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueModel {
    TailDrop(Queue),
    Of(Discipline),
}

impl QueueModel {
    /// The queue of a device if none is given.
    pub const USUAL: QueueModel = QueueModel::TailDrop(Queue { unit: Unit::Packets, amount: DEFAULT_FRAMES });
}

impl Field for QueueModel {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<QueueModel, FieldProblems> {
        match given {
            Value::Table(table) => Discipline::read(table, at.files).map(QueueModel::Of),
            _ => Queue::read(given, rule, at).map(QueueModel::TailDrop),
        }
    }

    fn write(&self) -> Value {
        match self {
            QueueModel::TailDrop(limit) => limit.write(),
            QueueModel::Of(discipline) => discipline.write(),
        }
    }

    fn view(&self) -> View {
        match self {
            QueueModel::TailDrop(limit) => limit.view(),
            QueueModel::Of(discipline) => discipline.view(),
        }
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let text = Queue::schema(rule, definitions);
        Discipline::schema(Some(text), definitions)
    }
}
