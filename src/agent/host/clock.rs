//! Clock of the turn machine: the time of each input, with a random number.

use crate::agent::turn::InputTime;
use jiff::Timestamp;

pub(super) fn moment() -> InputTime {
    // A random number that needs no generator: these bytes of a version 4 ID are random.
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    InputTime { now: Timestamp::now(), jitter: f64::from(random) / f64::from(u32::MAX) }
}
