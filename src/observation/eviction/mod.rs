//! Node-pressure eviction, the pure part: what the signals show, which pods would go in which order,
//! and when the next one has to.
//!
//! Time is passed in, and nothing is read or ended here. It fails towards not killing: a figure that
//! cannot be true makes its signal unknown, and no pod goes for one that is unknown.

pub mod decide;
pub mod facts;
pub mod pace;
pub mod rank;

use crate::model::eviction::{Signal, Threshold};
use crate::model::node::EvictionThreshold;
use crate::units::Quantity;
use crate::units::quantity::Format;

/// What a signal showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The signal.
    pub signal: Signal,
    /// The file system, by a directory on it; empty for what is of the whole node.
    pub place: String,
    /// What is known of it.
    pub state: State,
}

/// What is known of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Figures that can be true.
    Known(Figures),
    /// It cannot be told, for this reason: nothing is decided by it.
    Unknown(String),
    /// This node has no such bound, for this reason.
    Absent(String),
}

/// The figures of a signal: bytes, inodes or tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// What is left: the figure that decides.
    pub available: u64,
    /// Of how much.
    pub capacity: u64,
    /// Which figure decides, or which bound is the binding one.
    pub decides: String,
    /// Other figures that somebody may expect in its place.
    pub others: Vec<(String, u64)>,
}

impl Reading {
    /// The figures, where they can be true.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.state {
            State::Known(figures) => Some(figures),
            State::Unknown(_) | State::Absent(_) => None,
        }
    }

    /// How much must be left by a threshold of this signal.
    pub fn least(&self, threshold: &Threshold) -> Option<u64> {
        let figures = self.figures()?;
        (threshold.signal == self.signal).then(|| amount(threshold.least, figures.capacity))
    }

    /// Whether a threshold of this signal is met. One that was met stays so until the minimum reclaim is
    /// there as well.
    pub fn meets(&self, threshold: &Threshold, was_met: bool) -> Option<bool> {
        let (figures, least) = (self.figures()?, self.least(threshold)?);
        let more = if was_met {
            amount(threshold.reclaim, figures.capacity)
        } else {
            0
        };
        Some(figures.available < least.saturating_add(more))
    }
}

/// A threshold in units of what is counted.
pub fn amount(threshold: EvictionThreshold, capacity: u64) -> u64 {
    let capacity = Quantity::from_units(capacity, Format::BinarySi);
    threshold.of(capacity).to_u64_ceil().unwrap_or(u64::MAX)
}

/// An amount as Kubernetes writes it: bytes by powers of 1024, all else by thousands.
pub fn quantity(signal: Signal, amount: u64) -> String {
    let format = if signal.starved().is_bytes() {
        Format::BinarySi
    } else {
        Format::DecimalSi
    };
    Quantity::from_units(amount, format).to_string()
}
