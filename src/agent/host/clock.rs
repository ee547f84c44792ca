//! Clock for the turn machine, which supplies the time of each input and a random number.

use crate::agent::turn::InputTime;
use jiff::Timestamp;

pub(super) fn moment() -> InputTime {
    // A random number generator is not needed, because these bytes of a version 4 UUID are random.
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    InputTime { now: Timestamp::now(), jitter: f64::from(random) / f64::from(u32::MAX) }
}
