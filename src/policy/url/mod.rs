//! URL verdicts: a URL is parsed once, into the form used to connect, and judged by its text.

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

/// Returns whether a method only reads and changes nothing on the server.
pub fn only_asks(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests;
