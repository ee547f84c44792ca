//! URL verdicts: a URL is parsed once, as it will be connected to, and judged by its text.

mod host;
mod judge;
mod parse;
mod pattern;
mod ports;
mod ranges;
mod sends;

pub use judge::{judge, may_connect};
#[cfg(test)]
use parse::Host;
pub use parse::{Destination, parse};
pub use pattern::{HostPattern, PrivateHost};

/// Methods that ask and change nothing on the other side.
pub fn only_asks(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests;
